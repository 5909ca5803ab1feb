// SPDX-License-Identifier: Apache-2.0
#include "profiler/record_function.h"

#include <ATen/record_function.h>

namespace prof {

struct record_function::Scope {
  at::RecordFunction function{at::RecordScope::USER_SCOPE};
  std::string name;  // LibTorch keeps a pointer to it until the scope ends
};

record_function::record_function(std::string name) : scope_(std::make_unique<Scope>()) {
  if (!scope_->function.isActive()) {
    scope_.reset();  // nobody records: nothing to end either
    return;
  }
  scope_->name = std::move(name);
  scope_->function.before(scope_->name.c_str());
}

record_function::~record_function() = default;

}  // namespace prof
