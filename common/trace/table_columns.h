// SPDX-License-Identifier: Apache-2.0
//
// The columns of PyTorch's table, for what prints them in one form or another.
//
//   const trace::Sums sums = trace::sums_of(averages);
//   for (const trace::Column& column : trace::columns_of(averages, options, sums))
//     std::cout << column.title << ": " << column.cell(row) << '\n';
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/key_averages.h"

namespace trace {

struct Column {
  std::string title;
  std::int64_t width;  // code points
  std::function<std::string(const Row&)> cell;
};

// The footer's sums, us.
struct Sums {
  double cpu = 0;
  double device = 0;  // annotations on the device lie over kernels: they are not added
};
// The order decides the last bit, as in PyTorch.
[[nodiscard]] Sums sums_of(const std::vector<const Row*>& order);

// Those that PyTorch prints for these rows.
[[nodiscard]] std::vector<Column> columns_of(const Averages& averages, const TableOptions& options,
                                             const Sums& sums);

// The rows that the options leave, in the order that they ask for.
[[nodiscard]] std::vector<const Row*> shown(const std::vector<const Row*>& order,
                                            const TableOptions& options);

// The lines below the table: "Self CPU time total: 1.234ms".
[[nodiscard]] std::vector<std::string> footer_of(const Averages& averages,
                                                 const TableOptions& options, const Sums& sums);

}  // namespace trace
