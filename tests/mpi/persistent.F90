! SPDX-License-Identifier: BSD-3-Clause
! 20 starts of a persistent allreduce; with LARGE, also 20 broadcasts with a large count. Prints "right".
program persistent
  use mpi_f08
  implicit none
  integer :: rank, size, mine, sum, i
#ifdef LARGE
  integer(MPI_COUNT_KIND) :: one = 1
#endif
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  mine = rank
  call MPI_Allreduce_init(mine, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request)
  do i = 1, 20
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (sum /= size * (size - 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 4)
#ifdef LARGE
    call MPI_Bcast(sum, one, MPI_INTEGER, 0, MPI_COMM_WORLD)
#endif
  end do
  call MPI_Request_free(request)
  if (rank == 0) print *, "right"
  call MPI_Finalize()
end program
