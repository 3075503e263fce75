! SPDX-License-Identifier: BSD-3-Clause
! As late_into.c, in Fortran: functions without a choice buffer, which MPICH's mpi_f08 sends past the C level.
program late_into
#ifdef F08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: comm
  type(MPI_Win) :: win
  type(MPI_File) :: file
  type(MPI_Status) :: status
  type(MPI_Request) :: requests(1)
#else
  use mpi
  implicit none
  integer :: comm, win, file, requests(1)
  integer :: status(MPI_STATUS_SIZE)
#endif
  integer, parameter :: rounds = 5
  integer :: rank, round, error, data(2), done, indices(1)
  integer(kind=MPI_ADDRESS_KIND) :: bytes
  character(len=400) :: name, folder
  call get_command_argument(1, name)
  call get_command_argument(2, folder)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  data = 0
  bytes = 8
  do round = 1, rounds
    if (name == 'Win_fence') call MPI_Win_create(data, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, win, error)
    call MPI_Barrier(MPI_COMM_WORLD, error)
    if (rank == 1) call compute()
    select case (name)
    case ('Comm_split')
      call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, comm, error)
    case ('File_open')
      call MPI_File_open(MPI_COMM_WORLD, trim(folder)//'/late', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, error)
    case ('Win_fence')
      call MPI_Win_fence(0, win, error)
    case ('Probe')
      if (rank == 1) call MPI_Send(data, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, error)
      if (rank == 0) call MPI_Probe(1, 1, MPI_COMM_WORLD, status, error)
      if (rank == 0) call MPI_Recv(data, 1, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, status, error)
    case ('Wait', 'Waitany', 'Waitsome')
      if (rank == 1) call MPI_Send(data, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, error)
      if (rank == 0) call MPI_Irecv(data, 1, MPI_INTEGER, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, requests(1), error)
      if (rank == 0 .and. name == 'Wait') call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
      if (rank == 0 .and. name == 'Waitany') call MPI_Waitany(1, requests, done, status, error)
      if (rank == 0 .and. name == 'Waitsome') call MPI_Waitsome(1, requests, done, indices, MPI_STATUSES_IGNORE, error)
    end select
    call MPI_Barrier(MPI_COMM_WORLD, error)
    if (name == 'Comm_split') call MPI_Comm_free(comm, error)
    if (name == 'File_open') call MPI_File_close(file, error)
    if (name == 'Win_fence') call MPI_Win_free(win, error)
  end do
  call MPI_Finalize(error)
contains
  subroutine compute()
    double precision :: begin
    begin = MPI_Wtime()
    do while (MPI_Wtime() - begin < 0.02d0)
    end do
  end subroutine compute
end program late_into
