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
  end type cloud
contains
  subroutine setup(self, n)
    class(cloud), intent(inout) :: self
    integer, intent(in) :: n
    ! @block 400000 electrons%p
    ! @type electrons%p particle
    ! @block 800000 electrons%rho
    ! @type electrons%rho real(kind=8)
    ! @block 160000 electrons%common
    ! @type electrons%common real(kind=8)
    allocate (self%p(n))
    allocate (self%rho(n/100, 1000))
    allocate (self%common(2*n))
    self%p%mass = 1; self%rho = 0; self%common = 2
  end subroutine setup
end module cloud_mod

program objects
  use cloud_mod
  implicit none
  type(cloud) :: electrons
  call setup(electrons, 10000)
  print *, sum(electrons%p%mass), sum(electrons%rho), sum(electrons%common)
end program objects
