C SPDX-License-Identifier: BSD-3-Clause
C Fortran in the old form, whose statements go on by a sign in the sixth column. See names-fortran.f90.
      PROGRAM NAMES
      IMPLICIT NONE
      DOUBLE PRECISION, ALLOCATABLE :: A(:), B(:), C(:)
      INTEGER I, N, TOTAL
      N = 10000
C @block 80000 A
C @block 80008 B
C @block 80016 C
      ALLOCATE (A(N), B(N + 1),
     &          C(N + 2))
      DO 10 I = 1, N
        A(I) = I
        B(I) = A(I)
        C(I) = B(I)
   10 CONTINUE
C @block 160008 names (names-old.f:20)
      TOTAL = 0
      TOTAL = TOTAL + WEIGH(SQUARES(N))
      PRINT *, SUM(A), SUM(B), SUM(C), TOTAL
      CONTAINS
      FUNCTION SQUARES(M)
      INTEGER M
      DOUBLE PRECISION SQUARES(20001)
      SQUARES = DBLE(M)**2
      END FUNCTION
      INTEGER FUNCTION WEIGH(X)
      DOUBLE PRECISION X(:)
      WEIGH = INT(SUM(X) / 1D6)
      END FUNCTION
      END
