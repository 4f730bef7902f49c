! SPDX-License-Identifier: BSD-3-Clause
! Polymorphic objects and extended types: what procedures allocate in them. The names are checked as in
! names-fortran.f90.
module cloud_mod
  implicit none
  type :: particle
    double precision :: x(3), mass
    integer :: cell
  end type particle
  type :: base
    double precision, allocatable :: common(:)
  end type base
  type, extends(base) :: cloud
    type(particle), allocatable :: p(:)
    double precision, allocatable :: rho(:, :)
    type(particle), allocatable :: parts(:)
    integer, pointer :: index(:) => null()
  contains
    procedure :: setup
    procedure :: init => cloud_init
    procedure :: scatter
  end type cloud
  type :: sky
    type(cloud) :: near, far(3)
  end type sky
contains
  subroutine setup(self, n)
    class(cloud), intent(inout) :: self
    integer, intent(in) :: n
    ! @block 400000 electrons%p
    ! @type electrons%p particle
    ! @block 800000 electrons%rho
    ! @type electrons%rho real(kind=8)
    ! @block 160000 electrons%common
    ! @block 440000 ions%p
    ! @block 880000 ions%rho
    ! @block 176000 ions%common
    ! @block 480000 above%near%p
    ! @block 960000 above%near%rho
    ! @block 192000 above%near%common
    ! @block 520000 above%far(:)%p
    ! @block 1040000 above%far(:)%rho
    ! @block 208000 above%far(:)%common
    ! @type electrons%common real(kind=8)
    allocate (self%p(n))
    allocate (self%rho(n/100, 1000))
    allocate (self%common(2*n))
    self%p%mass = 1; self%rho = 0; self%common = 2
  end subroutine setup

  subroutine cloud_init(self, n, work)
    class(cloud), intent(inout) :: self
    integer, intent(in) :: n
    double precision, allocatable, intent(inout) :: work(:)
    allocate (self%common(n))
    self%common = 1
    allocate (work(n + 1))
  end subroutine cloud_init

  subroutine scatter(m, np)
    class(cloud), intent(inout) :: m
    integer, intent(in) :: np
    real :: r
    integer :: i
    ! @block 6000040 ions%parts
    ! @block 600004 ions%index
    allocate (m%parts(np)); allocate (m%index(np))
    do i = 1, np
      call random_number(r)
      m%index(i) = 1 + int(r*np)
      m%parts(i)%mass = r
      m%parts(i)%x = r
    end do
  end subroutine scatter
end module cloud_mod

program objects
  use cloud_mod
  implicit none
  type(cloud) :: electrons, ions
  type(sky) :: above
  integer :: count = 13000
  double precision, allocatable :: scratch(:)
  ! @block 240000 above%far(:)%common
  ! @block 240008 work
  ! @block 248000 above%near%common
  call setup(electrons, 10000)
  call ions%setup(11000); call above%near%setup(12000)
  call above%far(2)%setup(count)
  call ions%scatter(150001)
  deallocate (above%near%common)
  call above%far(1)%init(30000, scratch)
  deallocate (scratch)
  call above%near%init(count + 18000, scratch)
  print *, sum(scratch), sum(ions%rho), ions%parts(ions%index(7))%mass, above%far(2)%p(4)%mass
  print *, sum(electrons%p%mass), sum(electrons%rho), sum(electrons%common)
end program objects
