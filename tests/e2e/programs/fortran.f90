! SPDX-License-Identifier: BSD-3-Clause
! An allocatable array and a COMMON block, read at random in turns.
! usage: fortran [--truth] [SECONDS]
module work
  use iso_fortran_env, only: int64, real64
  implicit none
  integer(int64), parameter :: n = 4194304_int64
  integer(int64) :: position = 0
contains
  subroutine fill(words)
    integer(int64), intent(out) :: words(0:n-1)
    integer(int64) :: i, state
    state = 2463534242_int64
    do i = 0, n - 1
      state = ieor(state, ishft(state, 13))
      state = ieor(state, ishft(state, -7))
      state = ieor(state, ishft(state, 17))
      words(i) = state
    end do
  end subroutine fill

  subroutine walk(words, n_turns)
    integer(int64), intent(in) :: words(0:n-1)
    integer, intent(in) :: n_turns
    integer :: i
    do i = 1, n_turns
      position = words(iand(position + i, n - 1))
    end do
  end subroutine walk
end module work

program fortran
  use work
  implicit none
  integer(int64), allocatable :: field(:)
  integer(int64) :: table(0:n-1)
  common /block/ table
  real(real64) :: seconds, start, finish, used(2)
  character(len=32) :: argument
  logical :: is_truth
  integer :: a

  is_truth = .false.
  seconds = 2.5
  do a = 1, command_argument_count()
    call get_command_argument(a, argument)
    if (argument == '--truth') then
      is_truth = .true.
    else
      read (argument, *) seconds
    end if
  end do
  allocate (field(0:n-1))
  call fill(field)
  call fill(table)
  used = 0
  do while (sum(used) < seconds)
    call cpu_time(start)
    if (used(1) <= 2 * used(2)) then
      call walk(field, 20000)
      call cpu_time(finish)
      used(1) = used(1) + finish - start
    else
      call walk(table, 20000)
      call cpu_time(finish)
      used(2) = used(2) + finish - start
    end if
  end do
  if (is_truth) then
    print '(a,f0.1)', 'truth field ', 100 * used(1) / sum(used)
    print '(a,f0.1)', 'truth block ', 100 * used(2) / sum(used)
  end if
  if (position == 42) print *, position
end program fortran
