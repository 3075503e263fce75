! SPDX-License-Identifier: BSD-3-Clause
! Two call sites that share one wrapper, as in Fortran programs: rank 1 is late at the first, the last rank at the
! second. Only the wrapper's caller distinguishes them. Usage: wrapper CALLS COUNT STEP_US
module reductions
  use mpi
  implicit none
contains
  subroutine global_sum(values, sums, n)
    integer, intent(in) :: n
    double precision, intent(in) :: values(n)
    double precision, intent(out) :: sums(n)
    integer :: ierror
    call MPI_Allreduce(values, sums, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (sums(1) < 0) print *, 'negative'  ! no tail call
  end subroutine
end module

program wrapper
  use mpi
  use reductions
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function usleep(us) bind(C)
      import c_int
      integer(c_int), value :: us
    end function
  end interface
  integer :: ierror, rank, ranks, i, calls, n, step
  integer(c_int) :: slept
  double precision, allocatable :: values(:), sums(:)
  character(len=32) :: text
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call get_command_argument(1, text); read (text, *) calls
  call get_command_argument(2, text); read (text, *) n
  call get_command_argument(3, text); read (text, *) step
  allocate (values(n), sums(n))
  values = rank + 1
  do i = 1, calls
    if (rank == 1) slept = usleep(int(step, c_int))
    call global_sum(values, sums, n)
    if (rank == ranks - 1) slept = usleep(int(step, c_int))
    call global_sum(values, sums, n)
  end do
  if (rank == 0) print '(a,f8.1)', 'sum', sums(1)
  call MPI_Finalize(ierror)
end program
