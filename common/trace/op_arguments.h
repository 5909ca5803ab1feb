// SPDX-License-Identifier: Apache-2.0
//
// What the table says about an op's arguments: the shapes column and the FLOPs column.
//
//   trace::shapes_text(trace::table_shapes("[[8, 64], [[2], [3]], []]"));  // "[[8, 64], [], []]"
//   trace::flops("aten::mm", trace, trace.arguments_of(event));            // 2 * M * N * K
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace trace {

using Shapes = std::vector<std::vector<std::int64_t>>;

// `Input Dims` as the table sees it: of a list of tensors the table knows no shape. Text that is
// not a list of lists is no shapes at all.
[[nodiscard]] Shapes table_shapes(std::string_view input_dims);

// The shapes of the tensors in `argument`, which is a list of tensors; none where it is something
// else.
[[nodiscard]] Shapes list_shapes(std::string_view input_dims, std::size_t argument);

// As Python prints a list of lists.
[[nodiscard]] std::string shapes_text(const Shapes& shapes);

// The floating point operations of one call as torch counts them: for conv2d, mm, addmm, bmm,
// baddbmm, mul and add, and 0 for every other op.
[[nodiscard]] std::int64_t flops(std::string_view name, const Trace& trace,
                                 const Arguments& arguments);

}  // namespace trace
