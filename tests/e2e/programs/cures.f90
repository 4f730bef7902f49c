! SPDX-License-Identifier: BSD-3-Clause
! Loops in an order that the arrays do not have, and a field of large elements, with the same work after the cure.
! usage: cures-fortran CASE plain|changed SECONDS      of CPU time; prints nanoseconds per step
program cures
  implicit none
  integer, parameter :: n = 2500, n_cells = 60000
  type cell
     integer :: points(6) = 0
     integer :: np = 0
     real(8) :: places(6, 50) = 0
  end type
  type(cell), allocatable :: cells(:)
  integer, allocatable :: counts(:)
  real(8), allocatable :: a(:, :), b(:, :)
  character(len=20) :: which, variant, seconds
  real :: start, now, limit
  integer(8) :: steps
  integer :: k
  call get_command_argument(1, which)
  call get_command_argument(2, variant)
  call get_command_argument(3, seconds)
  read (seconds, *) limit
  steps = 0
  k = 0
  if (which == 'nest') then
     allocate (a(n, n), b(n, n))
     a = 1
     b = 0
  else
     allocate (cells(n_cells), counts(n_cells))
     counts = 0
  end if
  call cpu_time(start)
  do
     call cpu_time(now)
     if (now - start >= limit) exit
     k = k + 1
     if (which == 'nest' .and. variant == 'plain') then
        call add_wrong(a, b, k)
     else if (which == 'nest') then
        call add_right(a, b, k)
     else if (variant == 'plain') then
        call count_cells(cells, k)
     else
        call count_counts(counts, k)
     end if
     if (which == 'nest') then
        steps = steps + int(n, 8)*n
     else
        steps = steps + n_cells
     end if
  end do
  print '(f0.3)', (now - start)*1e9/steps
contains
  subroutine add_wrong(a, b, k)
    real(8), intent(in) :: a(:, :)
    real(8), intent(inout) :: b(:, :)
    integer, intent(in) :: k
    integer :: i, j
    do i = 1, size(a, 1)
       do j = 1, size(a, 2)
          b(i, j) = b(i, j) + a(i, j)*k
       end do
    end do
  end subroutine
  subroutine add_right(a, b, k)
    real(8), intent(in) :: a(:, :)
    real(8), intent(inout) :: b(:, :)
    integer, intent(in) :: k
    integer :: i, j
    do j = 1, size(a, 2)
       do i = 1, size(a, 1)
          b(i, j) = b(i, j) + a(i, j)*k
       end do
    end do
  end subroutine
  subroutine count_cells(cells, k)
    type(cell), intent(inout) :: cells(:)
    integer, intent(in) :: k
    integer :: i, hits
    hits = 0
    do i = 1, size(cells)
       if (cells(i)%np == 0) cycle
       hits = hits + 1
    end do
    cells(mod(k, size(cells)) + 1)%np = mod(k + hits, 2)
  end subroutine
  subroutine count_counts(counts, k)
    integer, intent(inout) :: counts(:)
    integer, intent(in) :: k
    integer :: i, hits
    hits = 0
    do i = 1, size(counts)
       if (counts(i) == 0) cycle
       hits = hits + 1
    end do
    counts(mod(k, size(counts)) + 1) = mod(k + hits, 2)
  end subroutine
end program
