// The numbers of the lessons that train nothing, or next to nothing, against the course's.

#include "core/error.h"
#include "tests/experiments/lesson_support.h"
#include "tests/support/message_of.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace minillm;
using namespace minillm::test;

TEST_CASE("lessons are found by name and by id, whatever the case of letters") {
  CHECK(find_lesson("gate-plane").id == "D10");
  CHECK(find_lesson("d10").name == "gate-plane");
  CHECK(find_lesson("Gate-Plane").id == "D10");
  CHECK_CONTAINS(message_of(Fault::input, [] { find_lesson("gate-plan"); }), "did you mean gate-plane?");
  CHECK_CONTAINS(message_of(Fault::input, [] { find_lesson("D99x"); }), "there is no lesson D99x");
}

TEST_CASE("the course's items all have a lesson, each once") {
  std::multiset<std::string_view> ids;
  for (const Lesson& lesson : lessons()) {
    ids.insert(lesson.id);
    CHECK(!lesson.title.en.empty());
    CHECK(lesson.title.zh != lesson.title.en);
  }
  const std::multiset<std::string_view> wanted = {"D01", "D02", "D03", "D04", "D05", "D06", "D07", "D08",
                                                  "D09", "D10", "D11", "D12", "D21", "D22", "D23", "D24",
                                                  "R06", "F18", "F19", "N16", "N17", "N18", "N21", "I17"};
  CHECK(ids == wanted);
}

TEST_CASE("a page speaks its language and keeps what it said") {
  Page english(Language::en);
  Page chinese(Language::zh);
  for (Page* page : {&english, &chinese}) {
    page->say({"{} apples", "{} 个苹果"}, 3);
  }
  CHECK(english.text() == "3 apples\n");
  CHECK(chinese.text() == "3 个苹果\n");
  CHECK(chinese.in({"apple", "苹果"}) == "苹果");
}

TEST_CASE("D01 linear-fails: one half for all four phrases, from every linear scheme") {
  const Numbers numbers = numbers_of_lesson("linear-fails");
  for (const char* outputs : {"linear", "stacked", "probabilities"}) {
    check_near(numbers.at(outputs), {0.5, 0.5, 0.5, 0.5}, 5e-4);
  }
  check_near(numbers.at("linear_mse"), {0.25}, 1e-6);
  check_near(numbers.at("stacked_mse"), {0.25}, 1e-6);
  check_near(numbers.at("cross_entropy"), {std::log(2.0)}, 1e-6);
}

TEST_CASE("D02 two-neurons: exact by hand, and found more often by wider networks") {
  const Numbers numbers = numbers_of_lesson("two-neurons");
  CHECK(numbers.at("outputs") == std::vector<double>{1, 0, 0, 1});
  const std::vector<double>& found = numbers.at("found");
  REQUIRE(found.size() == 3);
  CHECK(found[0] >= 1);
  CHECK(found[0] < found[1]);
  CHECK(found[1] < found[2]);
  CHECK(found[2] <= numbers.at("seeds")[0]);
}

TEST_CASE("D03 linear-collapse: two linear layers are one up to rounding, with ReLU they are not") {
  const Numbers numbers = numbers_of_lesson("linear-collapse");
  CHECK(numbers.at("difference")[0] < 1e-5);
  CHECK(numbers.at("difference")[1] < 1e-13);
  CHECK(numbers.at("difference")[1] > 0);
  check_near(numbers.at("oddness"), {0, 0}, 1e-6);
  CHECK(numbers.at("oddness_with_relu")[1] > 1);
}

TEST_CASE("D04 vanishing-gradient: geometric in depth, by about the gain a layer") {
  const Numbers numbers = numbers_of_lesson("vanishing-gradient");
  check_near(numbers.at("factor"), numbers.at("gains"), 0.04);
  const std::vector<double>& first = numbers.at("first");
  CHECK(first.front() < 1e-9);
  CHECK(first.back() > 1e7);
}

TEST_CASE("D05 tokens-alike: cosine to 1 and ratio to 0 without a residual connection, not with it") {
  const Numbers numbers = numbers_of_lesson("tokens-alike");
  CHECK(numbers.at("cosine_attention").back() > 0.9999);
  CHECK(numbers.at("ratio_attention").back() < 0.001);
  CHECK(numbers.at("cosine_ffn").back() > 0.99);
  CHECK(numbers.at("ratio_ffn").back() < 0.05);
  CHECK(numbers.at("cosine_attention_residual").back() < 0.5);
  CHECK(numbers.at("cosine_ffn_residual").back() < 0.5);
  CHECK(numbers.at("ratio_attention_residual").back() > 0.5);
  CHECK(numbers.at("ratio_ffn_residual").back() > 0.5);
  CHECK(numbers.at("ratio_attention").size() == numbers.at("cosine_attention").size() + 1);  // the embedding's too
}

TEST_CASE("D06 residual-on: nothing vanishes, and scaled or normalised branches stay bounded") {
  const Numbers numbers = numbers_of_lesson("residual-on");
  const double gains[] = {0.5, 0.8, 1.0, 1.25};
  for (size_t i = 0; i < 4; ++i) {
    const double square = gains[i] * gains[i];
    CHECK(numbers.at("residual")[i] > 1);
    CHECK(numbers.at("residual")[i] > 1e3 * numbers.at("nothing")[i]);
    CHECK(is_within(numbers.at("scaled")[i], std::exp(square / 2), 0.15));
    CHECK(is_within(numbers.at("pre_norm")[i], std::sqrt(1 + 100 * square), 0.25));
  }
}

TEST_CASE("R06 residual-gradient: I + dF/dx, and F(x) = -x leaves exactly nothing") {
  const Numbers numbers = numbers_of_lesson("residual-gradient");
  CHECK(numbers.at("identity") == std::vector<double>{1, 2, -1});
  check_near(numbers.at("tape"), numbers.at("formula"), 1e-14);
  const double x[] = {0.3, -0.7, 1.1};
  const double upstream[] = {1, 2, -1};
  for (size_t i = 0; i < 3; ++i) {
    const double slope = 0.5 * (1 - std::pow(std::tanh(x[i] / 2), 2));
    CHECK(is_within(numbers.at("tape")[i], upstream[i] * (1 + slope), 1e-12));
  }
  CHECK(numbers.at("counterexample") == std::vector<double>{0, 0, 0});
  for (const double error : numbers.at("gradcheck")) {
    CHECK(error < 1e-8);
  }
}

TEST_CASE("D21 stream-growth: sqrt(1 + N), and sqrt 2 with scaled writes") {
  const Numbers numbers = numbers_of_lesson("stream-growth");
  check_near(numbers.at("formula"), {3, 5, 11.358}, 1e-3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(is_within(numbers.at("drawn")[i], numbers.at("formula")[i], 0.01));
  }
  check_near(numbers.at("scaled"), {std::sqrt(2.0), std::sqrt(2.0), std::sqrt(2.0)}, 0.015);
  const std::vector<double>& plain = numbers.at("model_plain");
  const std::vector<double>& scaled = numbers.at("model_scaled");
  CHECK(plain.size() == 12);
  CHECK(is_within(plain.back() / scaled.back(), std::sqrt(24.0), 0.3));
}

TEST_CASE("D07 batchnorm-zeros: exactly 0 in every channel, and not under the others") {
  const Numbers numbers = numbers_of_lesson("batchnorm-zeros");
  for (const double channel : numbers.at("batchnorm")) {
    CHECK(channel == 0);
  }
  check_near(numbers.at("running"), numbers.at("x"), 1e-4);
  double sum = 0;
  double squares = 0;
  for (size_t i = 0; i < numbers.at("layernorm").size(); ++i) {
    sum += numbers.at("layernorm")[i];
    squares += numbers.at("rmsnorm")[i] * numbers.at("rmsnorm")[i];
  }
  CHECK(std::abs(sum) < 1e-12);
  CHECK(is_within(squares / 6, 1, 1e-4));
}

TEST_CASE("D08 batchnorm-neighbours: the neighbour moves BatchNorm's output alone") {
  const Numbers numbers = numbers_of_lesson("batchnorm-neighbours");
  CHECK(numbers.at("batchnorm")[0] > 0.1);
  CHECK(numbers.at("batchnorm")[1] > numbers.at("batchnorm")[0]);
  CHECK(numbers.at("layernorm") == std::vector<double>{0, 0});
  CHECK(numbers.at("rmsnorm") == std::vector<double>{0, 0});
}

TEST_CASE("D09 norm-invariance: the course's table") {
  const Numbers numbers = numbers_of_lesson("norm-invariance");
  const std::vector<double> layer = {-1.3416, -0.4472, 0.4472, 1.3416};
  for (const char* row : {"layernorm_x", "layernorm_shifted", "layernorm_scaled"}) {
    check_near(numbers.at(row), layer, 5e-5);
  }
  check_near(numbers.at("rmsnorm_x"), {0.3651, 0.7303, 1.0954, 1.4606}, 5e-5);
  check_near(numbers.at("rmsnorm_scaled"), numbers.at("rmsnorm_x"), 1e-12);
  check_near(numbers.at("rmsnorm_shifted"), {0.8765, 0.9562, 1.0359, 1.1155}, 5e-5);
  CHECK(is_within(numbers.at("layernorm_flipped")[0], -numbers.at("layernorm_x")[0], 1e-5));
}

TEST_CASE("N17 norm-scale: size 1 behind either norm, except near eps") {
  const Numbers numbers = numbers_of_lesson("norm-scale");
  for (const char* row : {"small", "times_200", "shifted"}) {
    CHECK(is_within(numbers.at(row)[1], 1, 1e-5));
    CHECK(is_within(numbers.at(row)[2], 1, 1e-5));
  }
  CHECK(is_within(numbers.at("small")[3], numbers.at("times_200")[3], 1e-5));
  CHECK(numbers.at("shifted")[3] < numbers.at("small")[3] / 2);
  CHECK(is_within(numbers.at("tiny")[2], std::sqrt(0.375 / 1.375), 1e-6));
}

TEST_CASE("N21 gain-decay: 0.3679 after 10,000 steps, 1 where it is zero-centered or left out") {
  const Numbers numbers = numbers_of_lesson("gain-decay");
  check_near({numbers.at("standard").back()}, {0.3679}, 5e-5);
  CHECK(is_within(numbers.at("standard").back(), std::pow(1 - 1e-4, 10000), 1e-9));
  CHECK(numbers.at("zero_centered") == std::vector<double>(5, 1.0));
  CHECK(numbers.at("excluded") == std::vector<double>(5, 1.0));
}

TEST_CASE("D10 gate-plane: SiLU(10) * 10 and SiLU(-1) * 1") {
  const Numbers numbers = numbers_of_lesson("gate-plane");
  check_near(numbers.at("unit_10_10"), {99.995}, 1e-3);
  check_near(numbers.at("unit_100_100"), {10000}, 1e-3);
  check_near(numbers.at("unit_-1_1"), {-0.2689}, 5e-5);
}

TEST_CASE("F18 overflow: the limits of fp8 and fp16, bf16's resolution, and bounded units") {
  const Numbers numbers = numbers_of_lesson("overflow");
  check_near(numbers.at("at_ten"), {99.995}, 1e-3);
  const std::vector<double>& first = numbers.at("first_above");
  CHECK(is_within(first[0], 21.2, 0.002));
  CHECK(is_within(first[1], 256, 0.001));
  CHECK(first[2] > 1e19);
  CHECK(numbers.at("spacing") == std::vector<double>{8, 0.0625, 0.5, std::ldexp(1.0, -17)});
  check_near(numbers.at("swiglu_clamp"), {0.73106, 99.9955, 99.9955, 99.9955}, 1e-4);
  CHECK(is_within(numbers.at("swiglu_oai")[1], 55.9996, 1e-6));
  check_near({numbers.at("situ_glu")[0], numbers.at("situ_glu")[1], numbers.at("situ_glu")[2]},
             {0.71582, 37.4846, 99.9329}, 1e-4);
}

TEST_CASE("D12 ffn-width: 8d/3 up to 16 and 256, and Qwen3.8 off the rule") {
  const Numbers numbers = numbers_of_lesson("ffn-width");
  CHECK(numbers.at("llama_2023")[1] == 688);
  CHECK(numbers.at("llama_2023")[4] == 688);
  CHECK(numbers.at("llama2-7b")[5] == 11008);
  CHECK(numbers.at("deepseek-llm-67b")[1] == 22016);
  CHECK(is_within(numbers.at("deepseek-llm-67b")[3], 21845.33, 1e-5));
  CHECK(numbers.at("deepseek-llm-67b")[5] == 86 * 256);
  CHECK(numbers.at("qwen3.8-27b")[1] == 17408);
  CHECK(is_within(numbers.at("qwen3.8-27b")[2], 3.4, 1e-5));
  CHECK(is_within(numbers.at("qwen3.8-27b")[3], 13653.33, 1e-5));
  CHECK(numbers.at("qwen3.8-27b")[5] == 13824);
  CHECK(numbers.at("gpt2")[2] == 4);
  CHECK(numbers.at("original_2017")[2] == 4);
}

TEST_CASE("F19 per-token: the FFN changes nothing at other tokens, causal attention only later ones") {
  const Numbers numbers = numbers_of_lesson("per-token");
  for (size_t t = 0; t < 5; ++t) {
    CHECK((numbers.at("ffn")[t] != 0) == (t == 2));
    CHECK((numbers.at("causal")[t] != 0) == (t >= 2));
    CHECK(numbers.at("bidirectional")[t] != 0);
  }
}

TEST_CASE("I17 temperature: the course's three distributions, and rising entropy") {
  const Numbers numbers = numbers_of_lesson("temperature");
  check_near(numbers.at("T0.5"), {0.8668, 0.1173, 0.0159}, 5e-5);
  check_near(numbers.at("T1"), {0.6652, 0.2447, 0.0900}, 5e-5);
  check_near(numbers.at("T2"), {0.5065, 0.3072, 0.1863}, 5e-5);
  CHECK(numbers.at("T0") == std::vector<double>{1, 0, 0});
  const std::vector<double>& entropy = numbers.at("entropy");
  CHECK(std::is_sorted(entropy.begin(), entropy.end()));
  CHECK(entropy.back() < std::log(3.0));
}

TEST_CASE("pictures are whole SVG files") {
  for (const char* name : {"gain-decay", "gate-plane", "tokens-alike"}) {
    Page page(Language::zh);
    find_lesson(name).run(page);
    CHECK(page.picture().starts_with("<svg "));
    CHECK(page.picture().ends_with("</svg>\n"));
    CHECK(page.picture().find("nan") == std::string::npos);
    CHECK(find_lesson(name).has_picture);
  }
  Page page(Language::en);
  find_lesson("temperature").run(page);
  CHECK(page.picture().empty());
}
