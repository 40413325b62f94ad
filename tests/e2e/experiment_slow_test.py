"""A suite killed at random moments comes to the same table."""
import random
import signal
import time

import experiment_test
import support

# Enough to be killed in: between runs, within them, and while speeds are measured.
SHORT_SUITE = experiment_test.HEAD + """
[[run]]
name = "gelu"
set = ["model.ffn=gelu"]
"""


class KilledSuite(support.Case):
    suite = experiment_test.Experiment.suite
    report = experiment_test.Experiment.report
    results = staticmethod(experiment_test.Experiment.results)

    def test_killed_at_random_moments_it_comes_to_the_same_table(self):
        begin = time.monotonic()
        self.run_program("experiment", self.suite(SHORT_SUITE), "--out", "whole")
        whole_seconds = time.monotonic() - begin
        seed = random.randrange(2 ** 32)
        moments = random.Random(seed)
        for number in range(10):
            process = self.start_program("experiment", "small.toml", "--out", "killed")
            time.sleep(moments.uniform(0, whole_seconds / 4))
            process.send_signal(signal.SIGKILL if number % 2 else signal.SIGTERM)
            _, said = process.communicate()
            self.assertIn(process.returncode, (0, 3, -signal.SIGKILL, -signal.SIGTERM), said)
        self.run_program("experiment", "small.toml", "--out", "killed")
        whole, killed = self.report("whole"), self.report("killed")
        self.assertEqual(self.results(killed), self.results(whole), f"seed {seed}")
        for run in whole["runs"]:
            self.assert_same_lines(f"killed/{run['name']}", f"whole/{run['name']}")


del experiment_test.Experiment  # the everyday test's

if __name__ == "__main__":
    support.main()
