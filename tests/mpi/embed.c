// SPDX-License-Identifier: BSD-3-Clause
// An embedded Python with a module that calls MPI as mpi4py does: from one place in C, without the interpreter's lock.
// Only Python's frames distinguish the callers. Usage: embed SCRIPT
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <mpi.h>

static PyObject* allreduce(PyObject* self, PyObject* arguments) {
  (void)self;
  long in, out = 0;
  if (!PyArg_ParseTuple(arguments, "l", &in)) return NULL;
  Py_BEGIN_ALLOW_THREADS MPI_Allreduce(&in, &out, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  Py_END_ALLOW_THREADS return PyLong_FromLong(out);
}
static PyObject* rank(PyObject* self, PyObject* arguments) {
  (void)self;
  (void)arguments;
  int r;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  return PyLong_FromLong(r);
}
static PyMethodDef methods[] = {{"allreduce", allreduce, METH_VARARGS, "sum over the ranks"},
                                {"rank", rank, METH_NOARGS, "this rank"},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "tinympi", NULL, -1, methods, NULL, NULL, NULL, NULL};
static PyObject* create(void) { return PyModule_Create(&module); }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  PyImport_AppendInittab("tinympi", create);
  Py_Initialize();
  FILE* file = argc > 1 ? fopen(argv[1], "r") : NULL;
  const int bad = file ? PyRun_SimpleFile(file, argv[1]) : 1;
  Py_Finalize();
  MPI_Finalize();
  return bad != 0;
}
