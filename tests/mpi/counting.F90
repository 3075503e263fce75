! SPDX-License-Identifier: BSD-3-Clause
! Collectives in a delete function of an attribute, in `use mpi` and `use mpi_f08` (with -DF08), whose MPI_Comm_free
! bypasses the C level of MPICH. Even ranks set the attribute before the first collective, others behind it. With an
! argument, rank 0 makes the calls before it frees the communicator.
#ifdef F08
#define IERR
#define ONLY_IERR
#define COMMUNICATOR type(MPI_Comm)
#else
#define IERR , ierr
#define ONLY_IERR ierr
#define COMMUNICATOR integer
#endif
module counting_calls
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  COMMUNICATOR :: freed  ! Open MPI 4.1.4 gives the function another handle
contains
  subroutine sums(comm, calls)
    COMMUNICATOR, intent(in) :: comm
    integer, intent(in) :: calls
    integer :: i, rank, n, total, ierr
    real(8) :: a(300), b(300)
    ierr = 0
    call MPI_Comm_rank(comm, rank IERR)
    call MPI_Comm_size(comm, n IERR)
    a = rank
    total = n * (n - 1) / 2
    do i = 1, calls
      call MPI_Barrier(comm IERR)
      call MPI_Allreduce(a, b, 300, MPI_DOUBLE_PRECISION, MPI_SUM, comm IERR)
      if (abs(b(300) - total) > 0 .or. ierr /= 0) call MPI_Abort(MPI_COMM_WORLD, 4 IERR)
    end do
  end subroutine
  subroutine on_delete(comm, keyval, attribute, extra, ierror)
    COMMUNICATOR :: comm
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute, extra
    call sums(freed, 9)
    ierror = MPI_SUCCESS
    if (keyval == 0 .and. attribute == extra .and. comm == freed) ierror = MPI_ERR_OTHER
  end subroutine
end module

program counting
  use counting_calls
  implicit none
  integer :: i, rank, keyval, ierr
  logical :: before
  COMMUNICATOR :: comm
  integer(MPI_ADDRESS_KIND) :: none
  none = 0
  ierr = 0
  before = command_argument_count() > 0
  call MPI_Init(ONLY_IERR)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank IERR)
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, keyval, none IERR)
  do i = 0, 20, 5
    call MPI_Comm_dup(MPI_COMM_WORLD, comm IERR)
    if (mod(rank, 2) == 0 .and. .not. (before .and. rank == 0)) call MPI_Comm_set_attr(comm, keyval, none IERR)
    call sums(comm, i)
    if (mod(rank, 2) == 1) call MPI_Comm_set_attr(comm, keyval, none IERR)
    if (before .and. rank == 0) call sums(comm, 9)
    freed = comm
    call MPI_Comm_free(comm IERR)
  end do
  if (rank == 0) print *, 'right'
  call MPI_Finalize(ONLY_IERR)
end program
