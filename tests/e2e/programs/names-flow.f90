! SPDX-License-Identifier: BSD-3-Clause
! A small flow code: modules, derived types with allocatable components that other procedures allocate, OpenMP. The names
! are checked as in names-fortran.f90.
! @static state_mod::table
module mesh_mod
  implicit none
  integer, parameter :: dp = kind(1.0d0)
  type :: block_t
    integer :: nx = 0, ny = 0
    real(dp), allocatable :: rho(:, :), mom(:, :, :), ener(:, :)
    real(dp), allocatable :: flux(:, :, :)
  end type block_t
  type :: solver_t
    type(block_t), allocatable :: blocks(:)
    real(dp), pointer :: residual(:) => null()
  end type solver_t
contains
  subroutine block_init(b, nx, ny)
    type(block_t), intent(inout) :: b
    integer, intent(in) :: nx, ny
    b%nx = nx; b%ny = ny
    ! @block 844992 solver%blocks(:)%rho
    ! @block 1689984 solver%blocks(:)%mom
    ! @block 842400 solver%blocks(:)%ener
    allocate (b%rho(0:nx + 1, 0:ny + 1), b%mom(2, 0:nx + 1, 0:ny + 1), b%ener(0:nx + 1, 0:ny))
    ! @block 3338496 solver%blocks(:)%flux
    allocate (b%flux(4, nx, ny))
    b%rho = 1; b%mom = 0; b%ener = 2.5_dp; b%flux = 0
  end subroutine block_init

  subroutine grow(shape, list, n)
    real(dp), intent(in) :: shape(:)
    real(dp), allocatable, intent(inout) :: list(:)
    integer, intent(in) :: n
    allocate (list(n))
    list = shape(1)
  end subroutine grow
end module mesh_mod

module state_mod
  use mesh_mod
  implicit none
  type(solver_t), target :: solver
  real(dp), allocatable :: viscosity(:)
  real(dp) :: table(200000)
  integer, allocatable :: perm(:)
contains
  subroutine state_init(nb, n)
    integer, intent(in) :: nb, n
    integer :: i, j, t
    real(dp) :: r
    allocate (solver%blocks(nb))
    do i = 1, nb
      call block_init(solver%blocks(i), n, n + 2)
    end do
    ! @block 829480 state_mod::solver%residual
    ! @block 829488 state_mod::viscosity
    ! @block 414748 state_mod::perm
    allocate (solver%residual(n*n + 1))
    allocate (viscosity(n*n + 2), perm(n*n + 3))
    viscosity = 1e-3_dp
    do i = 1, n*n
      perm(i) = i
    end do
    do i = n*n, 2, -1
      call random_number(r)
      j = 1 + int(r*i); t = perm(i); perm(i) = perm(j); perm(j) = t
    end do
    table = 0.5_dp
  end subroutine state_init
end module state_mod

module kernels_mod
  use state_mod
  implicit none
contains
  subroutine fluxes(b)
    type(block_t), intent(inout) :: b
    integer :: i, j
    !$omp parallel do private(i)
    do j = 1, b%ny - 1
      do i = 1, b%nx
        b%flux(1, i, j) = b%mom(1, i, j) - b%mom(1, i - 1, j)
        b%flux(2, i, j) = b%mom(2, i, j) - b%mom(2, i, j - 1)
        b%flux(3, i, j) = b%ener(i + 1, j) - b%ener(i - 1, j)
        b%flux(4, i, j) = b%rho(i, j + 1) - b%rho(i, j - 1)
      end do
    end do
  end subroutine fluxes

  subroutine scatter(n)
    integer, intent(in) :: n
    real(dp), allocatable :: work(:), grown(:)
    integer :: k
    real(dp) :: s
    ! @block 829504 work
    ! @block 829512 grown
    allocate (work(n + 4))
    call grow(work, grown, n + 5)
    s = 0
    !$omp parallel do reduction(+:s)
    do k = 1, n
      work(k) = viscosity(perm(k))*table(1 + mod(perm(k), 200000)) + grown(k)
      s = s + work(k)
    end do
    solver%residual(1) = s
  end subroutine scatter
end module kernels_mod

program flow
  use kernels_mod
  implicit none
  integer :: step, i, n
  n = 322
  call state_init(3, n)
  do step = 1, 2
    do i = 1, size(solver%blocks)
      call fluxes(solver%blocks(i))
    end do
    call scatter(n*n)
  end do
  print *, solver%residual(1), sum(solver%blocks(1)%flux)
end program flow
