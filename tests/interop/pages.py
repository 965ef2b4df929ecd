"""The programs in docs/a2a.md, taken from the page and run while a target agent works."""

import json
import os
import re
import subprocess

from stage import PATIENCE, eventually


def _run(stage, page, language, command):
    [program] = re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S)
    here = program.replace("http://127.0.0.1:7420", stage.wire.url)
    assert here != program, "the program asks nobody"
    spec = stage.spec()
    (stage.workspace / "docs/examples/taskspec-minimal.json").write_text(json.dumps(spec))
    environment = os.environ | {"HANDOFFD_TOKEN": stage.router}
    running = subprocess.Popen(command(here), cwd=stage.workspace, env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        def handed_over():
            assert running.poll() is None, running.communicate()
            return stage.ask("GET", f"/v1/handoffs/{spec['handoffId']}", token=stage.admin)[0] == 200

        eventually("the program hands work over", handed_over)
        stage.works(spec["handoffId"], "task.claimed", "task.started", "artifact.ready", "task.complete")
        said, errors = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    assert running.returncode == 0, errors
    lines = said.split("\n")
    assert lines[0] == "TASK_STATE_SUBMITTED" and lines[-2] == "TASK_STATE_COMPLETED", said
    assert "artifact report" in lines, said


def scenes(page, python, packages):
    def the_python_quick_start_works(_, stage):
        _run(stage, page, "python", lambda program: [python, "-c", program])

    def the_javascript_quick_start_works(_, stage):
        def command(program):
            # Beside the modules, so that node finds them.
            path = packages / "quick-start.mjs"
            path.write_text(program)
            return ["node", path]

        _run(stage, page, "javascript", command)

    return [the_python_quick_start_works, the_javascript_quick_start_works]
