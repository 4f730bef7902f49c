! SPDX-License-Identifier: BSD-3-Clause
! The ways in which Fortran programs come by memory. Every block has a size of its own; "@block" tells which name the
! block of that size is to be reported under, "@static" which names the arrays with static storage have.
! @static fields::parts
! @static block
! @static table
module fields
  implicit none
  integer, parameter :: wp = kind(1.0d0)
  type particle
    real(wp) :: x(3), v(3)
    integer :: id
  end type particle
  type grid
    integer :: n
    real(wp), allocatable :: rho(:), vel(:, :)
    real(wp), pointer :: flux(:) => null()
  end type grid
  type(particle) :: parts(4000)
  real(wp), allocatable :: temperature(:), density(:), pressure(:), halo(:, :)
  real(wp), pointer :: link(:) => null()
  type(particle), allocatable :: swarm(:)
  type(grid) :: mesh
contains
  subroutine set_up(n)
    integer, intent(in) :: n
    ! @block 80000 fields::temperature
    ! @block 80008 fields::density
    ! @block 80016 fields::pressure
    ! @block 160000 fields::halo
    allocate (temperature(n), density(n + 1), pressure(n + 2), halo(n, 2))
    ! @block 560000 fields::swarm
    ! @block 80024 fields::link
    allocate (swarm(n), &
              link(n + 3))
    ! @block 80032 fields::mesh%rho
    ! @block 240000 fields::mesh%vel
    ! @block 80040 fields::mesh%flux
    allocate (mesh%rho(n + 4), mesh%vel(3, n), mesh%flux(n + 5))
  end subroutine set_up

  subroutine work(g, n, given)
    type(grid), intent(inout) :: g
    integer, intent(in) :: n
    real(wp), allocatable, intent(inout) :: given(:)
    ! @block 80088 automatic
    real(wp) :: automatic(n + 11)
    real(wp), allocatable :: local(:), filled(:), copied(:), assigned(:)
    integer :: i, status
    ! @block 80048 mine%rho
    ! @block 160112 mine%vel
    ! @block 80064 given
    allocate (g%rho(n + 6), g%vel(2, n + 7), given(n + 8))
    ! @block 80072 local
    ! @block 80080 filled
    allocate (local(n + 9), filled(n + 10), source=1.0_wp)
    ! @block 88000 copied
    allocate (copied(n + 1000), stat=status)
    automatic = 2
    copied = 3
    do i = 1, n
      local(i) = filled(i) + g%rho(i) + automatic(i) + given(i) + copied(i)
    end do
    ! @block 96000 assigned
    assigned = [(real(i, wp), i=1, n + 2000)]
    deallocate (g%rho)
    call move_alloc(local, g%rho)
    print *, sum(filled), sum(g%rho), copied(3), assigned(n)
  end subroutine work

  ! Arrays of assumed shape belong to the caller, those of a pointer to whom it points.
  subroutine smooth(a, p)
    real(wp), intent(inout) :: a(:)
    real(wp), pointer, intent(out) :: p(:)
    integer :: i
    ! @block 104000 result
    allocate (p(size(a) + 2988))
    do i = 2, size(a) - 1
      a(i) = (a(i - 1) + a(i + 1))/2
      p(i) = a(i)
    end do
  end subroutine smooth
end module fields

program names
  use fields
  implicit none
  type(grid) :: mine
  type(grid), allocatable :: many(:)
  real(wp), allocatable :: a(:), b(:), c(:), given(:), d(:), e(:)
  real(wp), pointer :: result(:)
  real(wp) :: first(5000), second(3000)
  real(wp), save :: table(6000)
  common /block/ first, second
  integer :: n, i
  n = 10000
  call set_up(n)
  call work(mine, n, given)
  ! @block 80096 a
  ! @block 80104 b
  ! @block 80112 c
  allocate (a(n + 12), b(n + 13), c(n + 14))
  ! @block 67200 many
  allocate (many(300))
  do i = 1, 2
    ! @block 80120 many(:)%rho
    ! @block 320512 many(:)%vel
    allocate (many(i)%rho(n + 15), many(i)%vel(4, n + 16))
  end do
  ! @block 80136 d
  ! @block 40072 e
  allocate (real(wp) :: d(n + 17)); if (.not. allocated(e)) allocate (e(n/2 + 9))
  first = 1; second = 2; table = 3
  parts(:)%id = 3
  do i = 1, n
    a(i) = i; b(i) = a(i); c(i) = b(i)
    density(i) = c(i); temperature(i) = density(i); pressure(i) = 1; halo(i, :) = 2
    swarm(i)%id = i; link(i) = i; mesh%rho(i) = i; d(i) = i
  end do
  e = d(1:size(e))
  call smooth(a, result)
  do i = 1, n
    c(i) = a(i)*b(i) + c(n + 1 - i)
  end do
  print *, sum(c), first(5), second(7), table(5), parts(5)%id, sum(density), sum(temperature), sum(pressure)
  print *, sum(halo), sum(swarm%id), sum(link), result(4), e(3)
end program names
