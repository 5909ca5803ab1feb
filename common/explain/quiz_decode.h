// SPDX-License-Identifier: Apache-2.0
//
// The questions about a recording of decoding. Private to common/explain: others ask questions()
// (quiz.h).
//
//   std::vector<Question> questions = decode_questions(on_gpu);
//   questions[0].answer(view);   // nullopt for a recording without tokens
#pragma once

#include <vector>

#include "explain/quiz.h"

namespace explain {

std::vector<Question> decode_questions(bool on_gpu);

}  // namespace explain
