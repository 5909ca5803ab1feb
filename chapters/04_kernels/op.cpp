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

// The ops that a library registers. It is loaded the first time: a second dlopen registers nothing.
const std::vector<std::string>& ops_of(const std::filesystem::path& library) {
  static std::map<std::filesystem::path, std::vector<std::string>> loaded;
  // A name without a slash would be looked for in the system's folders.
  const std::filesystem::path file = std::filesystem::absolute(library);
  if (const auto found = loaded.find(file); found != loaded.end()) return found->second;
  const std::set<std::string> known = names_of_all_ops();
  if (::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    throw std::runtime_error(fmt::format("{} cannot be loaded: {}", library.string(), ::dlerror()));
  }
  std::vector<std::string>& ops = loaded[file];
  for (const std::string& name : names_of_all_ops()) {
    if (!known.contains(name)) ops.push_back(name);
  }
  return ops;
}

// The first of them that can be called so; `schema` says how, for people.
template <typename Signature>
c10::TypedOperatorHandle<Signature> find(const std::filesystem::path& library,
                                         std::string_view schema) {
  const std::vector<std::string>& ops = ops_of(library);
  for (const std::string& name : ops) {
    try {
      return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").typed<Signature>();
    } catch (const c10::Error&) {  // another signature
    }
  }
  throw std::runtime_error(
      fmt::format("{} registers no op {} -> (Tensor, Tensor){}", library.string(), schema,
                  ops.empty() ? "" : fmt::format("; it registers {}", fmt::join(ops, ", "))));
}

}  // namespace

std::filesystem::path Op::own_library() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libattention_kernels.so";
}

Op Op::load(const std::filesystem::path& library) {
  return Op(find<Signature>(library,
                            "(Tensor q, Tensor k, Tensor v, str layout, str causal, float? scale, "
                            "str kernel)"));
}

DecodeOp DecodeOp::load(const std::filesystem::path& library) {
  return DecodeOp(find<Signature>(library,
                                  "(Tensor q, Tensor k, Tensor v, Tensor lengths, Tensor? "
                                  "block_table, float? scale)"));
}

std::string DecodeOp::name() const {
  return op_.operator_name().name;
}

std::string Op::name() const {
  return op_.operator_name().name;
}

}  // namespace kernels
