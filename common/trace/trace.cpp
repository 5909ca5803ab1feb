// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.h"

#include "trace/numbers.h"

namespace trace {

bool is_device(Category category) {
  return is_gpu_operation(category) || category == Category::gpu_user_annotation ||
         category == Category::cuda_sync || category == Category::cuda_profiler_range;
}

bool is_gpu_operation(Category category) {
  return category == Category::kernel || category == Category::gpu_memcpy ||
         category == Category::gpu_memset;
}

bool is_annotation(Category category) {
  return category == Category::user_annotation || category == Category::gpu_user_annotation;
}

std::string_view to_string(Category category) {
  switch (category) {
    case Category::cpu_op:
      return "cpu_op";
    case Category::user_annotation:
      return "user_annotation";
    case Category::gpu_user_annotation:
      return "gpu_user_annotation";
    case Category::cuda_runtime:
      return "cuda_runtime";
    case Category::cuda_driver:
      return "cuda_driver";
    case Category::kernel:
      return "kernel";
    case Category::gpu_memcpy:
      return "gpu_memcpy";
    case Category::gpu_memset:
      return "gpu_memset";
    case Category::cuda_sync:
      return "cuda_sync";
    case Category::cuda_profiler_range:
      return "cuda_profiler_range";
    case Category::overhead:
      return "overhead";
    case Category::cpu_instant_event:
      return "cpu_instant_event";
    case Category::python_function:
      return "python_function";
    case Category::profiler_span:
      return "Trace";
    case Category::other:
      break;
  }
  return "other";
}

const Arguments& Trace::arguments_of(const Event& event) const {
  return arguments[is_device(event.category) ? 0 : event.details];
}

const Launch& Trace::launch_of(const Event& event) const {
  return launches[is_device(event.category) ? event.details : 0];
}

std::string_view Trace::metadata_value(std::string_view key) const {
  for (const Metadata& item : metadata) {
    if (item.key == key) return item.json;
  }
  return "";
}

bool Trace::flag(std::string_view key) const {
  const std::string_view value = metadata_value(key);
  std::int64_t number = 0;
  return value == "true" || (parse_integer(value, number) && number != 0);
}

}  // namespace trace
