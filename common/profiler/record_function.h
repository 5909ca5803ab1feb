// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace prof {

// torch.profiler.record_function: names a stretch of code in table and trace, from construction to
// the end of the scope, on the CPU and, around the kernels launched meanwhile, on the device.
//
//   {
//     prof::record_function scope("attn_fwd");
//     attention(q, k, v, mask);
//   }
//
// Costs next to nothing while no profiler records.
class [[nodiscard]] record_function {
 public:
  explicit record_function(std::string name);
  ~record_function();
  record_function(const record_function&) = delete;
  record_function& operator=(const record_function&) = delete;

 private:
  struct Scope;
  std::unique_ptr<Scope> scope_;
};

}  // namespace prof
