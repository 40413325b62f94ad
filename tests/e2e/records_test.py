"""Recorded experiments: a record is read as runs are, and training its config again gives its numbers."""
import json

import support

RECORDS = support.ROOT / "experiments" / "first" / "records"


class Records(support.Case):
    def test_a_recorded_run_is_made_again(self):
        record = RECORDS / "gelu-seed2"
        self.run_program("train", record / "config.toml", "--out", "again")
        summary = json.loads(self.path("again", "summary.json").read_text())
        recorded = json.loads((record / "summary.json").read_text())
        again = {}
        for line in self.metrics("again"):
            again["val" if "val_loss" in line else "train", line["step"]] = line
        compared = 0
        for text in (record / "metrics.jsonl").read_text().splitlines():
            line = json.loads(text)
            line.pop("tokens_per_s", None)
            ours = again["val" if "val_loss" in line else "train", line["step"]]
            if summary["numerics"] == recorded["numerics"]:
                self.assertEqual(ours, line)
                compared += 1
            elif "loss" in line and line["step"] < 20:
                self.assertAlmostEqual(ours["loss"], line["loss"], delta=1e-3)
                compared += 1
        self.assertGreaterEqual(compared, 20)

    def test_every_record_is_read_without_its_data(self):
        for records in sorted(support.ROOT.glob("experiments/*/records*")):
            report = json.loads(self.run_program("report", records, "--json").stdout)
            self.assertTrue(all(run["state"] in ("finished", "failed") for run in report["runs"]), records)
            self.assertEqual(report["variants"][0]["verdict"], "reference")
            for variant in report["variants"]:
                self.assertGreaterEqual(variant["speed_measurements"], 3, f"{records}: {variant['name']}")

    def test_records_stay_small(self):
        sizes = [path.stat().st_size for path in support.ROOT.glob("experiments/*/records*/**/*") if path.is_file()]
        self.assertLess(sum(sizes), 5e6)


if __name__ == "__main__":
    support.main()
