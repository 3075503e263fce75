! SPDX-License-Identifier: BSD-3-Clause
! An explicit step on a line of cells, with three procedures of a module. Usage: stencil CELLS STEPS
! On the rank INJECT_RANK, limit_slopes repeats its work INJECT_LOOPS times.
module solver
  implicit none
  integer :: repeats = 0
contains
  subroutine compute_fluxes(u, f)
    real(8), intent(in) :: u(:)
    real(8), intent(out) :: f(:)
    integer :: i
    do i = 2, size(u) - 1
      f(i) = 0.5d0 * (u(i + 1) - u(i - 1)) + sqrt(abs(u(i))) * 1.0d-3
    end do
  end subroutine
  subroutine limit_slopes(u, f)
    real(8), intent(in) :: u(:)
    real(8), intent(inout) :: f(:)
    integer :: i, k
    do k = 0, repeats
      do i = 2, size(u) - 1
        f(i) = f(i) * 0.999d0 / (1.0d0 + abs(u(i + 1) - 2 * u(i) + u(i - 1)))
      end do
    end do
  end subroutine
  subroutine advance(u, f)
    real(8), intent(inout) :: u(:)
    real(8), intent(in) :: f(:)
    integer :: i
    do i = 2, size(u) - 1
      u(i) = u(i) - 0.1d0 * f(i) + 1.0d-6 * sin(u(i))
    end do
  end subroutine
end module

program stencil
  use mpi
  use solver
  implicit none
  integer :: rank, ranks, ierr, cells, steps, s
  character(32) :: word
  real(8), allocatable :: u(:), f(:)
  real(8) :: own, all
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call get_command_argument(1, word); read (word, *) cells
  call get_command_argument(2, word); read (word, *) steps
  call get_environment_variable("INJECT_RANK", word)
  if (len_trim(word) > 0) then
    read (word, *) s
    if (s == rank) then
      call get_environment_variable("INJECT_LOOPS", word)
      read (word, *) repeats
    end if
  end if
  allocate (u(cells), f(cells))
  u = [(sin(0.01d0 * s), s = 1, cells)]
  f = 0
  do s = 1, steps
    call compute_fluxes(u, f)
    call limit_slopes(u, f)
    call advance(u, f)
    own = maxval(abs(u))
    call MPI_Allreduce(own, all, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
  end do
  if (rank == 0) print *, all
  call MPI_Finalize(ierr)
end program
