// SPDX-License-Identifier: Apache-2.0
#include "explain/decode_bytes.h"

#include <algorithm>

#include "explain/steps.h"
#include "trace/op_arguments.h"

namespace explain {
namespace {

using trace::Category;

constexpr std::string_view kSdpa = "aten::scaled_dot_product_attention";
constexpr std::string_view kKernel = "attention_kernels::decode";

// Of a hostile file's shapes, too: negative sizes are none.
double numbers_in(const std::vector<std::int64_t>& shape) {
  double product = shape.empty() ? 0 : 1;
  for (const std::int64_t size : shape)
    product *= static_cast<double>(std::max<std::int64_t>(size, 0));
  return product;
}

double numbers_in(const trace::Shapes& shapes, std::size_t argument) {
  return argument < shapes.size() ? numbers_in(shapes[argument]) : 0;
}

// The old cache is the first of the list; old and new are written.
CacheBytes::Moved of_cat(std::string_view dims) {
  const trace::Shapes tensors = trace::list_shapes(dims, 0);
  double all = 0;
  for (const auto& shape : tensors) all += numbers_in(shape);
  return {all, numbers_in(tensors, 0)};
}

// Rows of the first dimension, read and written.
CacheBytes::Moved of_index_select(const trace::Shapes& shapes) {
  if (shapes.size() < 3 || shapes[0].empty() || shapes[0].front() <= 0) return {};
  const double row = numbers_in(shapes[0]) / static_cast<double>(shapes[0].front());
  return {row * numbers_in(shapes[2]), row * numbers_in(shapes[2])};
}

CacheBytes::Moved moved_by(std::string_view name, std::string_view dims) {
  if (name == "aten::cat") return of_cat(dims);
  const trace::Shapes shapes = trace::table_shapes(dims);
  if (name == "aten::index_copy_") return {numbers_in(shapes, 3), 0};  // self, dim, index, source
  if (name == "aten::copy_") return {numbers_in(shapes, 0), 0};
  if (name == "aten::index_select") return of_index_select(shapes);
  if (name == kSdpa) return {0, numbers_in(shapes, 1) + numbers_in(shapes, 2)};  // q, k, v
  return {};
}

}  // namespace

CacheBytes::Moved CacheBytes::of_token(const Forward& token, double least) {
  Moved sum;
  for (const std::uint32_t op : token.ops) {
    const std::string_view name = tree_.name(op);
    const bool is_attention =
        tree_.parent(op) == token.annotation && (name == kSdpa || name == kKernel);
    if (!is_attention && !is_in_cache(op)) continue;
    if (name == kKernel) {
      sum.read += least;
      continue;
    }
    const Moved& moved = shapes_of(op);
    sum.written += moved.written * element_bytes_;
    sum.read += moved.read * element_bytes_;
  }
  return sum;
}

bool CacheBytes::is_in_cache(std::uint32_t op) const {
  const std::uint32_t parent = tree_.parent(op);
  return parent != trace::kNoEvent &&
         tree_.trace().events[parent].category == Category::user_annotation &&
         tree_.name(parent) == "cache";
}

const CacheBytes::Moved& CacheBytes::shapes_of(std::uint32_t op) {
  const trace::Event& event = tree_.trace().events[op];
  const trace::TextId dims = tree_.trace().arguments_of(event).input_dims;
  const auto [found, is_new] = known_.try_emplace({event.name, dims});
  if (is_new) found->second = moved_by(tree_.name(op), tree_.trace().text(dims));
  return found->second;
}

Stretches::Stretches(const trace::OpTree& tree, std::string_view name) {
  for (const std::uint32_t event : tree.order()) {
    const trace::Event& e = tree.trace().events[event];
    if (e.category == Category::user_annotation && tree.name(event) == name)
      stretches_.emplace_back(e.start_ns, end_ns(e));
  }
  std::sort(stretches_.begin(), stretches_.end());
}

bool Stretches::contains(std::int64_t time_ns) const {
  const auto next = std::partition_point(stretches_.begin(), stretches_.end(),
                                         [&](const auto& s) { return s.first <= time_ns; });
  return next != stretches_.begin() && time_ns <= (next - 1)->second;
}

}  // namespace explain
