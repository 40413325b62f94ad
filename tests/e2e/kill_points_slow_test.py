"""kill -9 before and after every system call of a whole run."""
import kill_points_test
import support


class EveryKillPoint(kill_points_test.KillPoints):
    MOST = 1_000_000


del kill_points_test.KillPoints  # its few moments are among these

if __name__ == "__main__":
    support.main()
