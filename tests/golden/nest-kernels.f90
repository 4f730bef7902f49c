! SPDX-License-Identifier: BSD-3-Clause
! As nest-kernels.c.
module nests
  real(8), allocatable :: field(:,:), flux(:,:)
contains

subroutine swap_explicit(a, b, n)
  integer, intent(in) :: n
  real(8), intent(inout) :: a(n, n)
  real(8), intent(in) :: b(n, n)
  integer :: i, j
  do i = 1, n      ! outer
    do j = 1, n    ! inner
      a(i, j) = a(i, j) + 2 * b(i, j)
    end do
  end do
end subroutine

subroutine fine_explicit(a, b, n)
  integer, intent(in) :: n
  real(8), intent(inout) :: a(n, n)
  real(8), intent(in) :: b(n, n)
  integer :: i, j
  do j = 1, n
    do i = 1, n
      a(i, j) = a(i, j) + 2 * b(i, j)
    end do
  end do
end subroutine

! The caller may pass every second row: how far apart neighbours are is only known there.
subroutine open_assumed(a, b)
  real(8), intent(inout) :: a(:, :)
  real(8), intent(in) :: b(:, :)
  integer :: i, j
  do i = 1, size(a, 1)
    do j = 1, size(a, 2)
      a(i, j) = a(i, j) * b(i, j)
    end do
  end do
end subroutine

subroutine swap_allocatable(n, m)
  integer, intent(in) :: n, m
  integer :: i, j
  do i = 1, n      ! outer
    do j = 1, m    ! inner
      field(i, j) = field(i, j) + 0.5d0 * flux(i, j)
    end do
  end do
end subroutine

subroutine fine_allocatable(n, m)
  integer, intent(in) :: n, m
  integer :: i, j
  do j = 1, m
    do i = 1, n
      field(i, j) = field(i, j) + 0.5d0 * flux(i, j)
    end do
  end do
end subroutine

! y = A x by rows, as in Fortran it should not be
subroutine swap_gemv(a, x, y, n, lda)
  integer, intent(in) :: n, lda
  real(8), intent(in) :: a(lda, *), x(n)
  real(8), intent(inout) :: y(n)
  integer :: i, j
  do i = 1, n      ! outer
    do j = 1, n    ! inner
      y(i) = y(i) + a(i, j) * x(j)
    end do
  end do
end subroutine

subroutine fine_gemv(a, x, y, n, lda)
  integer, intent(in) :: n, lda
  real(8), intent(in) :: a(lda, *), x(n)
  real(8), intent(inout) :: y(n)
  integer :: i, j
  do j = 1, n
    do i = 1, n
      y(i) = y(i) + a(i, j) * x(j)
    end do
  end do
end subroutine

end module
