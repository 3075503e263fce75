! SPDX-License-Identifier: BSD-3-Clause
! One program in three bindings: `use mpi`, whose calls reach the C level through libmpichfort, mpif.h (with -DMPIF), and
! `use mpi_f08` (with -DF08), whose MPI_Init and MPI_Barrier bypass it. With a path as argument, it also writes that file.
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
#elif !defined(MPIF)
  use mpi
#endif
  implicit none
#ifdef MPIF
  include 'mpif.h'
#endif
  integer :: rank, i, n, total, ierr
  real(8) :: a(500), b(500)
  character(500) :: path
  ierr = 0
  call get_command_argument(1, path)
  call MPI_Init(ONLY_IERR)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank IERR)
  call MPI_Comm_size(MPI_COMM_WORLD, n IERR)
  a = rank
  do i = 1, 150
    call MPI_Allreduce(a, b, 500, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD IERR)
    call MPI_Barrier(MPI_COMM_WORLD IERR)
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD IERR)
    if (total /= n * (n - 1) / 2 .or. abs(b(500) - total) > 0 .or. ierr /= 0) call MPI_Abort(MPI_COMM_WORLD, 4 IERR)
    if (path /= '' .and. mod(i, 30) == 0) call write_file()
  end do
  if (rank == 0) print *, 'right'
  call MPI_Finalize(ONLY_IERR)
contains
  subroutine write_file()
#ifdef F08
    type(MPI_File) :: file
#else
    integer :: file
#endif
    integer(MPI_OFFSET_KIND) :: offset
    offset = 4000_MPI_OFFSET_KIND * rank
    call MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE + MPI_MODE_WRONLY, MPI_INFO_NULL, file IERR)
    call MPI_File_write_at_all(file, offset, a, 500, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE IERR)
    call MPI_File_close(file IERR)
  end subroutine
end program
