// SPDX-License-Identifier: Apache-2.0
//
// The questions about a recording of a step's memory. Private to common/explain: others ask
// questions() (quiz.h).
//
//   std::vector<Question> questions = memory_questions();
//   questions[0].answer(view);   // nullopt for a recording without memory records
#pragma once

#include <vector>

#include "explain/quiz.h"

namespace explain {

std::vector<Question> memory_questions();

}  // namespace explain
