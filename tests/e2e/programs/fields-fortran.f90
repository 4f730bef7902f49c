! SPDX-License-Identifier: BSD-3-Clause
! Phases of equal length, each of which reads one field of one variable at random places: arrays of a derived type,
! components that are arrays, assumed-shape arrays of a caller, members of a COMMON block.
! usage: fields-fortran [SECONDS]      CPU seconds of each phase, default 0.15
module types
  use iso_fortran_env, only: int64, real64
  implicit none
  integer(int64), parameter :: n = 32768_int64
  integer, parameter :: n_turns = 4096
  integer(int64) :: sink = 0
  real(real64) :: seconds = 0.15_real64
  type :: particle
    real(real64) :: position(3), velocity(3)
    real(real64) :: mass
    integer :: id, kind
  end type particle
  type :: mesh
    integer :: n_cells
    real(real64), allocatable :: pressure(:)
    real(real64), allocatable :: energy(:)
  end type mesh
contains
  function now() result(t)
    real(real64) :: t
    call cpu_time(t)
  end function now

  subroutine walk_particles(p)
    type(particle), intent(in) :: p(0:)
    integer(int64) :: i
    integer :: turn
    real(real64) :: finish
    finish = now() + seconds
    i = 0
    do while (now() < finish)
      do turn = 1, n_turns
        i = iand(i * 5 + 12345 + int(p(i)%mass, int64), n - 1)
      end do
    end do
    sink = sink + i
  end subroutine walk_particles

  subroutine walk_numbers(a)
    real(real64), intent(in) :: a(0:)
    integer(int64) :: i
    integer :: turn
    real(real64) :: finish
    finish = now() + seconds
    i = 0
    do while (now() < finish)
      do turn = 1, n_turns
        i = iand(i * 5 + 12345 + int(a(i), int64), n - 1)
      end do
    end do
    sink = sink + i
  end subroutine walk_numbers

  recursive subroutine with_local()
    real(real64) :: local(0:n - 1)
    local = 0
    call walk_numbers(local)
  end subroutine with_local

  subroutine walk_common()
    real(real64) :: first(0:n - 1), second(0:n - 1)
    common /block/ first, second
    integer(int64) :: i
    integer :: turn
    real(real64) :: finish
    finish = now() + seconds
    i = 0
    do while (now() < finish)
      do turn = 1, n_turns
        i = iand(i * 5 + 12345 + int(second(i), int64), n - 1)
      end do
    end do
    sink = sink + i
  end subroutine walk_common
end module types

program fields
  use types
  implicit none
  type(particle), allocatable :: particles(:)
  type(mesh) :: grid
  real(real64) :: first(0:n - 1), second(0:n - 1)
  common /block/ first, second
  character(len=32) :: argument
  integer(int64) :: i
  if (command_argument_count() > 0) then
    call get_command_argument(1, argument)
    read (argument, *) seconds
  end if
  allocate (particles(n))
  do i = 1, n
    particles(i)%position = 0
    particles(i)%velocity = 0
    particles(i)%mass = 0
    particles(i)%id = 0
    particles(i)%kind = 0
  end do
  grid%n_cells = int(n)
  allocate (grid%pressure(n))
  allocate (grid%energy(n))
  grid%pressure = 0
  grid%energy = 0
  first = 0
  second = 0
  call walk_particles(particles)
  call walk_numbers(grid%energy)
  call with_local()
  call walk_common()
  if (sink == 1) print *, sink
end program fields
