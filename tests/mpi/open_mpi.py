# SPDX-License-Identifier: BSD-3-Clause
"""Variables for Open MPI's launcher: tests may run as root, on fewer cores than ranks. Since Open MPI 5 the launcher is
PRRTE's, with variables of its own. Open MPI 6 has another name for one of them, and says so on standard error.
Where routes are as on some virtual machines, Open MPI 5 finds by them no way between processes of one host. It says so,
and spawned processes wait for ever. `weighted` looks at addresses alone."""
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_mapby": ":oversubscribe",
    "OMPI_MCA_reachable": "weighted",
}
