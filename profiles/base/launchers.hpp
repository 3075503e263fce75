// SPDX-License-Identifier: BSD-3-Clause
// The table of launchers: their names, their options, how they hand variables to the ranks, and the variables by which
// a rank knows them. Everything that starts, names or recognises a launcher reads it. Needs no MPI and no memory: the
// preloaded library reads it as well.
#pragma once

#include <string_view>

namespace latecomer::profiles {

/// Whether a list of words, separated by spaces, has `word`.
constexpr bool has_word(std::string_view list, std::string_view word) {
  for (auto at = list.find(word); !word.empty() && at != list.npos; at = list.find(word, at + 1)) {
    const auto end = at + word.size();
    if ((at == 0 || list[at - 1] == ' ') && (end == list.size() || list[end] == ' ')) return true;
  }
  return false;
}

/// Lists are separated by spaces.
struct Launcher {
  enum class Hands { pair, word, list };
  std::string_view mpi;        ///< family of the library whose programs it starts (mpi_version.hpp); empty: of any
  std::string_view title;      ///< of that library, or of the launcher itself
  std::string_view names;      ///< of its file, or of the file behind links, in the order in which they are tried
  std::string_view libraries;  ///< beginnings of the names of libraries that no other program needs
  bool two_dashes;             ///< an option may begin with two dashes where this table has one
  std::string_view ranks;      ///< options for the number of ranks
  std::string_view values;     ///< further options that take the next word
  std::string_view pairs;      ///< options that take the next two words
  std::string_view flags;      ///< options without a value, as far as `latecomer run` has one of that name
  /// Hands a variable to the ranks: `-genv NAME VALUE` (a pair, or one word with `=`), `-x NAME=VALUE`,
  /// `--export=LIST`.
  Hands hands;
  std::string_view variable;  ///< options that do so; the first one is used
  bool each;                  ///< it does so for one program of several, which ":" separates
  const char *rank, *size;    ///< variables that the ranks get

  /// The option in `word` as this table writes it, without "=VALUE".
  constexpr std::string_view option_in(std::string_view word) const {
    if (two_dashes && word.starts_with("--")) word.remove_prefix(1);
    return word.substr(0, word.find('='));
  }
};

inline constexpr Launcher kLaunchers[] = {
    {"mpich", "MPICH", "mpiexec.mpich mpiexec.hydra mpiexec mpirun mpirun.mpich mpirun.hydra", "", true, "-n -np",
     "-host -hosts -hostlist -f -hostfile -machinefile -rankmap -ppn -wdir -umask -path -configfile -envlist -genvlist "
     "-launcher -launcher-exec -bootstrap -bootstrap-exec -rmk -topolib -bind-to -binding -map-by -membind -demux "
     "-iface -prepend-pattern -outfile-pattern -errfile-pattern -nameserver -order-nodes -localhost -usize -timeout "
     "-ranks-per-proc -gpus-per-proc -output-from",
     "-env -genv", "-verbose", Launcher::Hands::pair, "-genv -env", false, "PMI_RANK", "PMI_SIZE"},
    {"openmpi", "Open MPI", "mpiexec.openmpi mpirun.openmpi mpirun mpiexec orterun prterun prun",
     "libopen-rte libopen-pal libprrte libpmix", true, "-n -np -c",
     "-H -host -hostfile -machinefile -default-hostfile -x -N -npernode -npersocket -map-by -bind-to -rank-by "
     "-rankfile -rf -cf -cartofile -cpu-set -cpu-list -slot-list -cpus-per-proc -cpus-per-rank -ppr -wd -wdir -path "
     "-prefix -am -tune -app -output-filename -preload-files -xterm -xml-file -stdin -max-restarts -max-vm-size "
     "-timeout -launch-agent -debugger -hnp -report-uri -report-pid -report-events -ompi-server -server-wait-time "
     "-personality -add-host -add-hostfile -amca -arch -display -dvm -dvm-uri -file -forward-signals "
     "-initial-errhandler -keepalive -memory-alloc-kinds -output -output-directory -pset -runtime-options -singleton "
     "-spawn-timeout -stream-buffering -tmpdir -with-ft -mapby -rankby -bindto -rtos -activate -set-env -unset-env "
     "-alloc-id -session-id",
     "-mca -gmca -omca -gomca -prtemca -pmixmca -gpmixmca -append-env -prepend-env", "-quiet -verbose",
     Launcher::Hands::word, "-x", true, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"", "Slurm's srun", "srun", "", false, "-n --ntasks",
     "-A --account --acctg-freq --accel-bind -b --begin -B --extra-node-info --bb --bbf --bcast-exclude -c "
     "--cpus-per-task -C --constraint --cluster-constraint --comment --container --cores-per-socket --core-spec -S "
     "--cpu-bind --cpu-freq --cpus-per-gpu -d --dependency -D --chdir --deadline --delay-boot -e --error --epilog "
     "--export -F --nodefile -G --gpus --gid --gpu-bind --gpu-freq --gpus-per-node --gpus-per-socket --gpus-per-task "
     "--gres --gres-flags --het-group --hint -i --input -J --job-name --jobid -L --licenses -m --distribution -M "
     "--clusters --mail-type --mail-user --mcs-label --mem --mem-bind --mem-per-cpu --mem-per-gpu --mincpus --mpi "
     "--msg-timeout -N --nodes --network --ntasks-per-core --ntasks-per-gpu --ntasks-per-node --ntasks-per-socket -o "
     "--output --open-mode -p --partition --power --prefer --priority --profile --prolog -q --qos -r --relative "
     "--reservation --signal --slurmd-debug --sockets-per-node --switches -t --time -T --threads --task-epilog "
     "--task-prolog --thread-spec --threads-per-core --time-min --tmp --uid -w --nodelist -W --wait --wckey -x "
     "--exclude",
     "", "--quiet --verbose", Launcher::Hands::list, "--export", true, "SLURM_PROCID", "SLURM_NTASKS"}};

/// Names that every MPI library gives to its launcher.
inline constexpr std::string_view kSharedNames = "mpiexec mpirun";

/// Commands that only start the command behind their options.
inline constexpr std::string_view kStarters =
    "env nice ionice chrt taskset numactl stdbuf time timeout nohup setsid setarch prlimit";

/// The launcher of a family's library; nullptr: it has none of its own.
constexpr const Launcher* launcher_of(std::string_view mpi) {
  for (const Launcher& one : kLaunchers)
    if (!mpi.empty() && one.mpi == mpi) return &one;
  return nullptr;
}

}  // namespace latecomer::profiles
