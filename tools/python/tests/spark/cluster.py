"""A Spark cluster of one machine: a master and two workers, all on loopback addresses."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

HOST = "127.0.0.1"

#: Timeout for a process of the cluster, in seconds.
START = 90


def missing():
    """Returns what is missing for a cluster, if anything."""
    try:
        import pyarrow  # noqa: F401
        import pyspark
    except ImportError as error:
        return f"{error.name} is not installed"
    if int(pyspark.__version__.split(".")[0]) < 4:
        return f"pyspark {pyspark.__version__} is older than 4"
    java = os.path.join(os.environ["JAVA_HOME"], "bin/java") if "JAVA_HOME" in os.environ else "java"
    if shutil.which(java) is None:
        return "there is no java"
    version = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    digits = version.partition('"')[2].partition(".")[0]
    if not digits.isdigit() or int(digits) < 17:
        return f"Java 17 is needed, found {version.splitlines()[0] if version else 'none'}"
    return None


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


class Cluster:
    """Starts and stops the processes."""

    def __init__(self, directory, workers=2, memory="1g"):
        import pyspark

        self.directory = Path(directory)
        self.home = Path(pyspark.__file__).parent
        self.memory = memory
        self.web = free_port()
        port = free_port()
        self.url = f"spark://{HOST}:{port}"
        self.processes = []
        self.master = self._start(
            "master", "org.apache.spark.deploy.master.Master",
            "--host", HOST, "--port", str(port), "--webui-port", str(self.web),
        )  # fmt: skip
        self.workers = []
        try:
            self._wait(0)
            for _ in range(workers):
                self.add_worker()
            self._wait(workers)
        except BaseException:
            self.close()
            raise

    def _start(self, name, kind, *arguments):
        environment = os.environ | {
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(self.directory / "local"),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": "512m",
        }
        log = open(self.directory / f"{name}.log", "wb")
        process = subprocess.Popen(
            [self.home / "bin/spark-class", kind, *arguments],
            env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            cwd=self.directory, start_new_session=True,
        )  # fmt: skip
        log.close()
        self.processes.append(process)
        return process

    def add_worker(self):
        number = len(self.workers)
        self.workers.append(
            self._start(
                f"worker-{number}", "org.apache.spark.deploy.worker.Worker",
                "--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", self.memory,
                "--work-dir", str(self.directory / f"work-{number}"), self.url,
            )  # fmt: skip
        )

    def alive(self):
        """Returns the number of live workers that the master reports; 0 if it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.web}/json/", timeout=5) as answer:
                return json.load(answer)["aliveworkers"]
        except (OSError, ValueError):
            # A starting master answers every address with its front page.
            return None

    def _wait(self, workers):
        deadline = time.monotonic() + START
        while (alive := self.alive()) is None or alive < workers:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the cluster has {alive} of {workers} workers: {self.logs()}")
            time.sleep(0.2)

    def logs(self):
        tails = {log.name: log.read_text()[-2000:] for log in self.directory.glob("*.log")}
        return json.dumps(tails, indent=1)

    def kill_worker(self, number):
        """Kills a worker, its executors and their Python processes, like a power loss."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)
        self.workers[number].wait()

    def session(self, **settings):
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = HOST
        builder = SparkSession.builder.master(self.url).appName("hamdex")
        settings = {
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.ui.enabled": "false",
            "spark.executor.memory": "768m",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
            "spark.cleaner.referenceTracking.cleanCheckpoints": "true",
            "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={self.directory}",
        } | settings
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        session.sparkContext.setCheckpointDir(str(self.directory / "checkpoints"))
        return session

    def close(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
