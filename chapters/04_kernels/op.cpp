// SPDX-License-Identifier: Apache-2.0
#include "op.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <stdexcept>
#include <vector>

namespace kernels {
namespace {

std::set<std::string> names_of_all_ops() {
  std::set<std::string> names;
  for (const c10::OperatorName& op : c10::Dispatcher::singleton().getAllOpNames()) {
    if (op.overload_name.empty()) names.insert(op.name);
  }
  return names;
}

}  // namespace

std::filesystem::path Op::own_library() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libattention_kernels.so";
}

Op Op::load(const std::filesystem::path& library) {
  static std::map<std::filesystem::path, Op> loaded;  // a second dlopen registers nothing new
  // A name without a slash would be looked for in the system's folders.
  const std::filesystem::path file = std::filesystem::absolute(library);
  if (const auto found = loaded.find(file); found != loaded.end()) return found->second;
  const std::set<std::string> known = names_of_all_ops();
  if (::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    throw std::runtime_error(fmt::format("{} cannot be loaded: {}", library.string(), ::dlerror()));
  }
  std::vector<std::string> others;
  for (const std::string& name : names_of_all_ops()) {
    if (known.contains(name)) continue;
    try {
      const Op op(
          c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").typed<Signature>());
      return loaded.emplace(file, op).first->second;
    } catch (const c10::Error&) {
      others.push_back(name);
    }
  }
  throw std::runtime_error(fmt::format(
      "{} registers no op (Tensor q, Tensor k, Tensor v, str layout, str causal, float? scale, str "
      "kernel) -> (Tensor, Tensor){}",
      library.string(),
      others.empty() ? "" : fmt::format("; it registers {}", fmt::join(others, ", "))));
}

std::string Op::name() const {
  return op_.operator_name().name;
}

}  // namespace kernels
