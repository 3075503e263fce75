// SPDX-License-Identifier: BSD-3-Clause
// Data-parallel training of a small convolutional network, as in Proficz 2018, section 6. The network has three
// convolutions, three average poolings and two fully connected layers, 145,578 parameters in all. Each process trains
// on mini-batches of 8 images, and an allreduce averages the parameters after every iteration. The program generates
// images of CIFAR-10's shape. One process is late because it also prepares the data of the next epoch.
// Usage: training [ITERATIONS [LATE_RANK [PREPARED_IMAGES]]]
#include <mpi.h>
#ifdef SAYS_HOW_FAR
#include <latecomer.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

constexpr int kBatch = 8, kClasses = 10;  // as in Proficz 2018: images per process, classes of CIFAR-10
using Vec = std::vector<float>;

/// 5 x 5 with padding 2, then ReLU, then average pooling by 2. Maps are [channel][row][column].
struct Convolution {
  int in, out, side;
  float *weight, *bias, *weight_gradient, *bias_gradient;
  Vec padded, sums;

  static int parameters(int in, int out) { return out * in * 25 + out; }
  void forward(const Vec& x, Vec& y) {
    const int wide = side + 4;
    padded.assign(static_cast<std::size_t>(in) * wide * wide, 0);
    for (int c = 0; c < in; ++c)
      for (int r = 0; r < side; ++r)
        std::copy_n(&x[static_cast<std::size_t>((c * side + r) * side)], side,
                    &padded[static_cast<std::size_t>((c * wide + r + 2) * wide + 2)]);
    sums.assign(static_cast<std::size_t>(out) * side * side, 0);
    for (int o = 0; o < out; ++o) {
      float* s = &sums[static_cast<std::size_t>(o * side * side)];
      std::fill_n(s, side * side, bias[o]);
      for (int c = 0; c < in; ++c)
        for (int k = 0; k < 25; ++k) {
          const float w = weight[(o * in + c) * 25 + k];
          for (int r = 0; r < side; ++r) {
            const float* p = &padded[static_cast<std::size_t>((c * wide + r + k / 5) * wide + k % 5)];
            for (int q = 0; q < side; ++q) s[r * side + q] += w * p[q];
          }
        }
    }
    const int half = side / 2;
    y.resize(static_cast<std::size_t>(out) * half * half);
    for (int o = 0; o < out; ++o)
      for (int r = 0; r < half; ++r)
        for (int q = 0; q < half; ++q) {
          const float* s = &sums[static_cast<std::size_t>((o * side + 2 * r) * side + 2 * q)];
          y[static_cast<std::size_t>((o * half + r) * half + q)] =
              0.25f * (std::max(s[0], 0.f) + std::max(s[1], 0.f) + std::max(s[side], 0.f) + std::max(s[side + 1], 0.f));
        }
  }
  void backward(const Vec& y_gradient, Vec& x_gradient) {
    const int half = side / 2, wide = side + 4;
    Vec padded_gradient(padded.size(), 0), row(static_cast<std::size_t>(side) * side);
    for (int o = 0; o < out; ++o) {
      for (int r = 0; r < side; ++r)
        for (int q = 0; q < side; ++q) {
          const std::size_t at = static_cast<std::size_t>((o * side + r) * side + q);
          row[static_cast<std::size_t>(r * side + q)] =
              sums[at] > 0 ? 0.25f * y_gradient[static_cast<std::size_t>((o * half + r / 2) * half + q / 2)] : 0;
        }
      for (const float g : row) bias_gradient[o] += g;
      for (int c = 0; c < in; ++c)
        for (int k = 0; k < 25; ++k) {
          const float w = weight[(o * in + c) * 25 + k];
          float sum = 0;
          for (int r = 0; r < side; ++r) {
            const std::size_t at = static_cast<std::size_t>((c * wide + r + k / 5) * wide + k % 5);
            const float *p = &padded[at], *g = &row[static_cast<std::size_t>(r * side)];
            float* d = &padded_gradient[at];
            for (int q = 0; q < side; ++q) {
              sum += p[q] * g[q];
              d[q] += w * g[q];
            }
          }
          weight_gradient[(o * in + c) * 25 + k] += sum;
        }
    }
    x_gradient.resize(static_cast<std::size_t>(in) * side * side);
    for (int c = 0; c < in; ++c)
      for (int r = 0; r < side; ++r)
        std::copy_n(&padded_gradient[static_cast<std::size_t>((c * wide + r + 2) * wide + 2)], side,
                    &x_gradient[static_cast<std::size_t>((c * side + r) * side)]);
  }
};

struct Linear {
  int in, out;
  bool relu;
  float *weight, *bias, *weight_gradient, *bias_gradient;
  Vec input, sums;

  static int parameters(int in, int out) { return out * in + out; }
  void forward(const Vec& x, Vec& y) {
    input = x;
    sums.resize(static_cast<std::size_t>(out));
    y.resize(static_cast<std::size_t>(out));
    for (int o = 0; o < out; ++o) {
      float s = bias[o];
      for (int i = 0; i < in; ++i) s += weight[o * in + i] * x[static_cast<std::size_t>(i)];
      sums[static_cast<std::size_t>(o)] = s;
      y[static_cast<std::size_t>(o)] = relu ? std::max(s, 0.f) : s;
    }
  }
  void backward(const Vec& y_gradient, Vec& x_gradient) {
    x_gradient.assign(static_cast<std::size_t>(in), 0);
    for (int o = 0; o < out; ++o) {
      const float g = relu && sums[static_cast<std::size_t>(o)] <= 0 ? 0 : y_gradient[static_cast<std::size_t>(o)];
      bias_gradient[o] += g;
      for (int i = 0; i < in; ++i) {
        weight_gradient[o * in + i] += g * input[static_cast<std::size_t>(i)];
        x_gradient[static_cast<std::size_t>(i)] += g * weight[o * in + i];
      }
    }
  }
};

/// An image of a class: the class's pattern of waves, and noise.
void make_image(std::mt19937& random, int label, Vec& image) {
  std::normal_distribution<float> noise(0, 0.5f);
  image.resize(3 * 32 * 32);
  for (int c = 0; c < 3; ++c)
    for (int r = 0; r < 32; ++r)
      for (int q = 0; q < 32; ++q)
        image[static_cast<std::size_t>((c * 32 + r) * 32 + q)] =
            std::sin(0.2f * static_cast<float>((label + 1) * (r + c)) + 0.1f * static_cast<float>(label * q)) +
            noise(random);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int iterations = argc > 1 ? std::atoi(argv[1]) : 100;
  const int late = argc > 2 ? std::atoi(argv[2]) : 1;
  const int prepared = argc > 3 ? std::atoi(argv[3]) : 400;

  const int counts[] = {Convolution::parameters(3, 32), Convolution::parameters(32, 32),
                        Convolution::parameters(32, 64), Linear::parameters(1024, 64),
                        Linear::parameters(64, kClasses)};
  int total = 0;
  for (const int n : counts) total += n;
  Vec parameters(static_cast<std::size_t>(total)), gradients(parameters.size()), averaged(parameters.size());
  std::mt19937 same(1), own(static_cast<unsigned>(100 + rank));
  const float fans[] = {75, 800, 800, 1024, 64};
  for (int l = 0, at = 0; l < 5; at += counts[l++]) {
    std::normal_distribution<float> start(0, std::sqrt(2 / fans[l]));
    for (int i = 0; i < counts[l]; ++i) parameters[static_cast<std::size_t>(at + i)] = start(same);
  }
  int at = 0;
  const auto place = [&](auto& layer, int weights, int biases) {
    layer.weight = &parameters[static_cast<std::size_t>(at)];
    layer.weight_gradient = &gradients[static_cast<std::size_t>(at)];
    at += weights;
    layer.bias = &parameters[static_cast<std::size_t>(at)];
    layer.bias_gradient = &gradients[static_cast<std::size_t>(at)];
    at += biases;
    std::fill_n(layer.bias, biases, 0.f);
  };
  Convolution conv[3] = {{3, 32, 32, nullptr, nullptr, nullptr, nullptr, {}, {}},
                         {32, 32, 16, nullptr, nullptr, nullptr, nullptr, {}, {}},
                         {32, 64, 8, nullptr, nullptr, nullptr, nullptr, {}, {}}};
  Linear full[2] = {{1024, 64, true, nullptr, nullptr, nullptr, nullptr, {}, {}},
                    {64, kClasses, false, nullptr, nullptr, nullptr, nullptr, {}, {}}};
  for (Convolution& c : conv) place(c, c.out * c.in * 25, c.out);
  for (Linear& f : full) place(f, f.out * f.in, f.out);

  double in_allreduce = 0, first_loss = 0, last_loss = 0;
  Vec image, maps[5], back[5];
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int iteration = 0; iteration < iterations; ++iteration) {
    std::fill(gradients.begin(), gradients.end(), 0.f);
    double loss = 0;
    if (rank == late)
      for (int i = 0; i < prepared; ++i) make_image(own, i % kClasses, image);
    for (int b = 0; b < kBatch; ++b) {
      const int label = static_cast<int>(own() % kClasses);
      make_image(own, label, image);
      for (int l = 0; l < 3; ++l) conv[l].forward(l ? maps[l - 1] : image, maps[l]);
      for (int l = 0; l < 2; ++l) full[l].forward(maps[2 + l], maps[3 + l]);
      // Softmax and cross entropy.
      Vec& scores = maps[4];
      const float most = *std::max_element(scores.begin(), scores.end());
      float sum = 0;
      for (float& s : scores) sum += s = std::exp(s - most);
      Vec error(kClasses);
      for (int c = 0; c < kClasses; ++c)
        error[static_cast<std::size_t>(c)] = scores[static_cast<std::size_t>(c)] / sum - (c == label ? 1.f : 0.f);
      loss -= std::log(scores[static_cast<std::size_t>(label)] / sum + 1e-12f) / kBatch;
      full[1].backward(error, back[4]);
      full[0].backward(back[4], back[3]);
      for (int l = 2; l >= 0; --l) {
#ifdef SAYS_HOW_FAR  // as in Proficz 2018, section 6: before the last layer
        if (l == 0 && b == kBatch - 1) latecomer_edge(0.96);
#endif
        conv[l].backward(back[l + 1], back[l]);
      }
    }
    constexpr float kRate = 0.01f;  // chosen, not measured: the loss decreases
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= kRate / kBatch * gradients[i];
    const double before = MPI_Wtime();
    MPI_Allreduce(parameters.data(), averaged.data(), total, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    in_allreduce += MPI_Wtime() - before;
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] = averaged[i] / static_cast<float>(size);
    if (iteration < 10) first_loss += loss / 10;
    if (iteration >= iterations - 10) last_loss += loss / 10;
  }
  const double elapsed = MPI_Wtime() - begin;
  double mine[3] = {in_allreduce, first_loss, last_loss}, sums[3];
  MPI_Reduce(mine, sums, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf(
        "%d parameters, %d processes, %d iterations: total %.3f s, allreduce %.3f s per process; loss %.3f, at the end "
        "%.3f\n",
        total, size, iterations, elapsed, sums[0] / size, sums[1] / size, sums[2] / size);
  MPI_Finalize();
  return 0;
}
