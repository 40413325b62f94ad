"""Text from a trained model, as a user asks for it."""
import support


class Generate(support.Case):
    def setUp(self):
        super().setUp()
        self.train("run", train__steps=60, data__seq_len=24, train__eval_every=0, optim__lr=0.02)

    def generate(self, *arguments):
        return self.run_program("generate", "run", *arguments).stdout

    def test_a_seed_repeats_a_text(self):
        texts = [self.generate("--seed", seed) for seed in (1, 1, 2)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_a_drawn_seed_is_printed_and_repeats_the_text(self):
        seeds = set()
        for _ in range(2):
            done = self.run_program("generate", "run")
            seed = support.re.search(r"^seed (\d+)$", done.stderr, support.re.M).group(1)
            self.assertEqual(self.generate("--seed", seed), done.stdout)
            seeds.add(seed)
        self.assertEqual(len(seeds), 2)  # their texts may be the same: an end at once, for one

    def test_greedy_needs_no_seed(self):
        greedy = [self.generate("--temperature", 0, "--seed", seed) for seed in (1, 2)]
        self.assertEqual(greedy[0], greedy[1])
        self.assertEqual(greedy[0], self.generate("--top-k", 1, "--seed", 3))
        self.assertNotEqual(greedy[0], self.generate("--seed", 1, "--top-p", 1))

    def test_json_is_the_same_text(self):
        done = self.json_of("generate", "run", "--prompt", "Two cats", "--seed", 4, "--max-tokens", 9)
        self.assertLessEqual({"text", "prompt_token_ids", "token_ids", "seed", "tokens_per_s", "prefill_tokens_per_s"},
                             set(done))
        self.assertEqual(done["seed"], 4)
        self.assertEqual(done["prompt_token_ids"][0], 1)
        self.assertEqual(len(done["prompt_token_ids"]), 3)
        self.assertLessEqual(len(done["token_ids"]), 9)
        self.assertGreater(done["prefill_tokens_per_s"], 0)
        plain = self.generate("--prompt", "Two cats", "--seed", 4, "--max-tokens", 9)
        self.assertEqual(plain, "Two cats" + done["text"] + "\n")

    def test_the_context_ends_a_text(self):
        done = self.json_of("generate", "run", "--seed", 1, "--max-tokens", 1000, "--top-p", 0.5)
        self.assertLessEqual(len(done["token_ids"]), 24)

    def test_an_empty_prompt(self):
        done = self.json_of("generate", "run", "--prompt", "", "--seed", 1)
        self.assertEqual(done["prompt_token_ids"], [1])
        self.assertEqual(done["text"], self.json_of("generate", "run", "--seed", 1)["text"])

    def test_no_tokens(self):
        self.assertEqual(self.generate("--prompt", "Two cats", "--max-tokens", 0), "Two cats\n")

    def test_a_prompt_longer_than_the_context(self):
        prompt = "Two cats" + " see the ball" * 11  # <s> and 35 words
        for more in ([], ["--json"]):
            message = self.refused("generate", "run", "--prompt", prompt, *more)
            self.assertIn("--prompt", message)
            self.assertRegex(message, r"found 36 tokens.*expected 1 to 24")

    def test_several_prompts(self):
        """Side by side, each as it would be by itself with a seed of its own."""
        prompts = ["Two cats", "", "The red dog", "Two cats see the ball"]
        (self.folder / "prompts.txt").write_text("\n".join(prompts) + "\n", encoding="utf-8")
        words = ["--max-tokens", 30, "--top-p", 1]
        found = self.generate("--prompts", "prompts.txt", "--seed", 7, "--json", *words).splitlines()
        alone = [self.json_of("generate", "run", "--prompt", prompt, "--seed", 7 + i, *words)
                 for i, prompt in enumerate(prompts)]
        timeless = [{key: value for key, value in one.items() if not key.endswith("per_s")} for one in alone]
        self.assertEqual([{key: value for key, value in support.json.loads(line).items() if not key.endswith("per_s")}
                          for line in found], timeless)
        self.assertGreater(len({len(one["token_ids"]) for one in alone}), 1, "some end before others")
        done = self.run_program("generate", "run", "--prompts", "prompts.txt", "--seed", 7, *words)
        self.assertEqual(done.stdout, "".join(f"{p}{one['text']}\n" for p, one in zip(prompts, alone)))
        self.assertIn("seeds 7 to 10", done.stderr)
        (self.folder / "empty.txt").write_bytes(b"")
        self.assertIn("empty.txt: holds no prompt", self.refused("generate", "run", "--prompts", "empty.txt"))
        self.assertIn("--prompts: stands beside --prompt",
                      self.refused("generate", "run", "--prompts", "prompts.txt", "--prompt", "x"))

    def test_weights_in_fewer_bytes(self):
        exact = self.json_of("generate", "run", "--temperature", 0)
        for name in ("bf16", "int8"):
            rounded = self.json_of("generate", "run", "--temperature", 0, "--weights", name)
            self.assertEqual(rounded["token_ids"][:4], exact["token_ids"][:4])
        self.assertIn("--weights: is no type of weights to decode with; found int4",
                      self.refused("generate", "run", "--weights", "int4"))

    def test_a_dialogue(self):
        """A line is a turn, an empty one none; greedy, each answer is what generate writes behind the same text."""
        done = self.run_program("chat", "run", "--temperature", 0, "--template", "plain", "--max-tokens", 3,
                                input="Two cats\n\nsee the ball\n")
        first = self.json_of("generate", "run", "--temperature", 0, "--max-tokens", 3,
                             "--prompt", "User: Two cats\nAssistant:")
        answers = done.stdout.split("\n")
        self.assertEqual(answers[0], first["text"].split("\n")[0])
        self.assertRegex(done.stderr, r"seed \d+")
        again = self.run_program("chat", "run", "--seed", 3, input="Two cats\n" * 9)
        self.assertIn("the context of 24 tokens", again.stderr)
        self.assertEqual(self.run_program("chat", "run", "--seed", 3, input="Two cats\n" * 9).stdout, again.stdout)

    def test_a_turn_that_does_not_fit(self):
        message = self.refused("chat", "run", input="see the ball " * 20)
        self.assertRegex(message, r"chat: the message.* longer than the model's context; found \d+ tokens")
        self.assertIn("llama2, chatml, plain", self.refused("chat", "run", "--template", "jinja", input=""))

    def test_eval_repeats(self):
        first = self.json_of("eval", "run")
        self.assertLessEqual({"val_loss", "bits_per_byte", "tokens"}, set(first))
        self.assertEqual(self.json_of("eval", "run"), first)
        self.run_program("train", "--resume", "run", "train.steps=61")
        self.assertNotEqual(self.json_of("eval", "run")["val_loss"], first["val_loss"])
        # The checkpoint of 60 steps is still there, and still the same.
        again = self.json_of("eval", "run", "--checkpoint", 60)
        self.assertEqual((again["val_loss"], again["tokens"]), (first["val_loss"], first["tokens"]))
        self.assertLess(self.json_of("eval", "run", "--tokens", 240)["tokens"], first["tokens"])


if __name__ == "__main__":
    support.main()
