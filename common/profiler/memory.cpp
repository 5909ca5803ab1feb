// SPDX-License-Identifier: Apache-2.0
#include "profiler/memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>
#include <mutex>

namespace prof {
namespace {

class AllocationListener : public c10::MemoryReportingInfoBase {
 public:
  explicit AllocationListener(c10::DeviceType device_type) : device_type_(device_type) {}

  void reportMemoryUsage(void* /*pointer*/, std::int64_t bytes, std::size_t /*allocated*/,
                         std::size_t /*reserved*/, c10::Device device) override {
    if (device.type() != device_type_) return;
    const std::lock_guard lock(mutex_);  // backward allocates on threads of its own
    current_ += bytes;                   // negative for a free
    peak_ = std::max(peak_, current_);
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }

 private:
  c10::DeviceType device_type_;
  std::mutex mutex_;
  std::int64_t current_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace

std::int64_t peak_memory(c10::DeviceType device_type, const std::function<void()>& work) {
  const auto listener = std::make_shared<AllocationListener>(device_type);
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, listener);
    work();
  }
  return listener->peak();
}

}  // namespace prof
