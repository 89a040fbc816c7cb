// TensorBoard's events as bytes: the protocol buffers Event and Summary, written by hand (six
// message types, no schema compiler), and the record around them. TensorFlow,
// core/util/event.proto, core/framework/summary.proto, core/lib/io/record_writer.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::metrics {

struct Scalar {
  std::string tag;
  double value = 0;
};

// Counts of values in (limits[i-1], limits[i]]; the first bucket begins at the least double.
struct Histogram {
  double minimum = 0, maximum = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits, counts;
};

// Equal buckets between the least and the largest value; values that are not finite are left out.
Histogram histogram_of(std::span<const float> values, int buckets);

struct EventTime {
  double wall_seconds = 0;  // since 1970
  int64_t step = 0;
};

std::string version_event(EventTime time);
// Makes TensorBoard drop what earlier files of the folder hold for steps >= time.step.
std::string session_start_event(EventTime time);
std::string scalars_event(EventTime time, std::span<const Scalar> scalars);
// Markdown, in TensorBoard's text tab.
std::string text_event(EventTime time, std::string_view tag, std::string_view markdown);
std::string histogram_event(EventTime time, std::string_view tag, const Histogram& histogram);

// length, masked CRC of the length, data, masked CRC of the data.
std::string record_of(std::string_view event);

}  // namespace onebit::metrics
