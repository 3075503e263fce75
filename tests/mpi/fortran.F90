! SPDX-License-Identifier: BSD-3-Clause
! One program in two bindings: `use mpi`, whose calls reach the C level through libmpichfort, and `use mpi_f08` (with
! -DF08), whose MPI_Init and MPI_Barrier bypass it.
#ifdef F08
#define IERR
#define ONLY_IERR
#else
#define IERR , ierr
#define ONLY_IERR ierr
#endif
program sums
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer :: rank, i, n, total, ierr
  real(8) :: a(500), b(500)
  ierr = 0
  call MPI_Init(ONLY_IERR)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank IERR)
  call MPI_Comm_size(MPI_COMM_WORLD, n IERR)
  a = rank
  do i = 1, 150
    call MPI_Allreduce(a, b, 500, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD IERR)
    call MPI_Barrier(MPI_COMM_WORLD IERR)
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD IERR)
    if (total /= n * (n - 1) / 2 .or. abs(b(500) - total) > 0 .or. ierr /= 0) call MPI_Abort(MPI_COMM_WORLD, 4 IERR)
  end do
  if (rank == 0) print *, 'right'
  call MPI_Finalize(ONLY_IERR)
end program
