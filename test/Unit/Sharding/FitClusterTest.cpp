//===- FitClusterTest.cpp - a machine's figures from measured times -------===//
//
// Times are made of known figures, with and without what other jobs do to them; what is fitted must be these figures again.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/FitCluster.h"
#include "cleave/Sharding/CostModel.h"
#include <gtest/gtest.h>
#include <random>

using namespace cleave::spmd;

namespace {

double sumDeviations(const std::vector<Sample> &samples, const std::vector<double> &factors) {
  double sum = 0;
  for (const Sample &sample : samples) {
    double ns = 0;
    for (size_t term = 0; term < factors.size(); ++term)
      ns += sample.terms[term] * factors[term];
    sum += std::abs(ns / sample.ns - 1);
  }
  return sum;
}

// 200 ns, 30 a message, half a nanosecond a byte: from 8 bytes to 64 MB.
std::vector<Sample> makeLine() {
  std::vector<Sample> samples;
  for (double messages : {1, 2})
    for (double bytes = 8; bytes < 1e8; bytes *= 4)
      samples.push_back({{1, messages, bytes}, 200 + 30 * messages + 0.5 * bytes});
  return samples;
}

TEST(FitCluster, ALineIsFoundAgain) {
  std::vector<double> factors = fitLeastDeviation(makeLine());
  ASSERT_EQ(factors.size(), 3u);
  EXPECT_NEAR(factors[0], 200, 1e-6);
  EXPECT_NEAR(factors[1], 30, 1e-6);
  EXPECT_NEAR(factors[2], 0.5, 1e-9);
}

// Each fourth time is that of a busy machine, up to ten times as long: the line does not move.
TEST(FitCluster, OutliersMoveNothing) {
  std::mt19937 random(1);
  std::vector<Sample> samples = makeLine();
  for (size_t i = 0; i < samples.size(); i += 4)
    samples[i].ns *= 1.5 + random() % 9;
  std::vector<double> factors = fitLeastDeviation(samples);
  EXPECT_NEAR(factors[0], 200, 1e-6);
  EXPECT_NEAR(factors[1], 30, 1e-6);
  EXPECT_NEAR(factors[2], 0.5, 1e-9);
}

// A line that would cross zero below it is fitted without its beginning.
TEST(FitCluster, NothingIsNegative) {
  EXPECT_EQ(fitLeastDeviation({{{{1, 10}, 10}, {{1, 20}, 30}, {{1, 30}, 50}}})[0], 0);
  EXPECT_EQ(fitLeastDeviation(std::vector<Sample>{{std::vector<double>{0}, 7}}), std::vector<double>{0});
  EXPECT_TRUE(fitLeastDeviation({}).empty());
}

// No random answer, and none next to it, is better than what is said to be the best.
TEST(FitCluster, NothingIsBetter) {
  std::mt19937 random(2);
  auto draw = [&] { return (random() % 1000 + 1) / 100.0; };
  for (int round = 0; round < 50; ++round) {
    std::vector<Sample> samples;
    for (size_t i = 0, count = 3 + random() % 8; i < count; ++i)
      samples.push_back({{1, draw(), draw()}, draw()});
    std::vector<double> best = fitLeastDeviation(samples);
    double least = sumDeviations(samples, best);
    for (int other = 0; other < 2000; ++other) {
      std::vector<double> factors = best;
      for (double &factor : factors)
        factor =
            other % 2 ? draw() * (random() % 3) : std::max(0.0, factor * (1 + (int(random() % 200) - 100) / 1000.0));
      EXPECT_GE(sumDeviations(samples, factors), least - 1e-9);
    }
  }
}

/// Times of a machine of 100 Gflop/s, 200 in bf16, 40 GB/s in a cache of 1.5 MB behind 80 ns, and 10 GB/s behind it; 300 ns to begin, 50 a message, 5
/// GB/s between ranks.
MeasuredTimes makeTimes(int64_t ranks) {
  MeasuredTimes times;
  times.launchNs = 120;
  for (double size : {1e6, 1e7, 1e8}) {
    times.products.push_back({"f32", size, 0, size / 100});
    times.products.push_back({"bf16", size, 0, size / 200});
  }
  for (double bytes = 12e3; bytes < 1e9; bytes *= 4)
    times.copies.push_back({"f32", 0, bytes, bytes < 1.5e6 ? 80 + bytes / 40 : bytes / 10});
  for (int64_t bytes = 8; bytes < 100'000'000; bytes *= 4) {
    double all = 300 + 50.0 * (ranks - 1) + static_cast<double>(bytes) / 5;
    times.collectives.push_back({"all_gather", ranks, bytes, 0, all});
    times.collectives.push_back({"all_to_all", ranks, bytes, 0, all});
    times.collectives.push_back({"all_reduce", ranks, bytes, 0, all + 50.0 * (ranks - 1)});
    times.collectives.push_back({"exchange", ranks, bytes, 1, 300 + 50 + static_cast<double>(bytes) / 5});
  }
  return times;
}

TEST(FitCluster, AMachineIsFoundAgain) {
  for (int64_t ranks : {2, 4}) {
    FittedCluster fitted = fitCluster(makeTimes(ranks));
    const ClusterDevice &device = fitted.cluster.device;
    EXPECT_NEAR(device.getFlopsPerNs("f32"), 100, 1e-9);
    EXPECT_NEAR(device.getFlopsPerNs("bf16"), 200, 1e-9);
    EXPECT_EQ(device.launchNs, 120);
    EXPECT_EQ(device.cacheBytes, 768'000);
    EXPECT_NEAR(device.cacheBytesPerNs, 40, 1e-9);
    EXPECT_NEAR(device.memoryBytesPerNs, 10, 1e-9);
    EXPECT_NEAR(fitted.cluster.beginNs, 300, 0.5);
    EXPECT_NEAR(fitted.cluster.levels.front().link.latencyNs, 50, 0.5);
    EXPECT_NEAR(fitted.cluster.levels.front().link.bytesPerNs, 5, 1e-2);
    ASSERT_EQ(fitted.deviations.size(), 9u);
    for (const Deviation &deviation : fitted.deviations)
      EXPECT_LT(deviation.getMean(), 1e-3) << deviation.what;
  }
}

// Memory that is as fast everywhere has no cache. One kind of four that takes three times as long is told, and the others are not.
TEST(FitCluster, WhatDoesNotFitIsTold) {
  MeasuredTimes times = makeTimes(2);
  for (KernelTime &copy : times.copies)
    copy.ns = copy.bytes / 10;
  for (CollectiveTime &collective : times.collectives)
    collective.ns *= collective.kind == "all_to_all" ? 3 : 1;
  FittedCluster fitted = fitCluster(times);
  EXPECT_EQ(fitted.cluster.device.cacheBytes, 0);
  for (const Deviation &deviation : fitted.deviations) {
    EXPECT_EQ(deviation.getMean() > kLargestDeviation, deviation.what == "all_to_all") << deviation.what;
    EXPECT_EQ(deviation.all.size(), deviation.ns.size());
    EXPECT_EQ(deviation.all.size(), deviation.sizes.size());
  }
}

// Beyond what is fitted ranks copy at a tenth of the rate: the figures stay, and how far they are off there is told by kind only.
TEST(FitCluster, LargeCollectivesMoveNothing) {
  MeasuredTimes times = makeTimes(2);
  size_t large = 0;
  for (CollectiveTime &collective : times.collectives)
    if (collective.bytes > kLargestFitted) {
      collective.ns *= 10;
      ++large;
    }
  ASSERT_GT(large, 0u);
  FittedCluster fitted = fitCluster(times);
  EXPECT_NEAR(fitted.cluster.levels.front().link.bytesPerNs, 5, 1e-2);
  for (const Deviation &deviation : fitted.deviations) {
    EXPECT_EQ(deviation.getMean() > 0.1, deviation.isPart) << deviation.what;
    if (deviation.what == "collectives")
      EXPECT_EQ(deviation.all.size(), times.collectives.size() - large);
  }
}

} // namespace
