// Command rebound is an OpenAI-compatible gateway that recovers from upstream
// failures before the client notices them.
package main

import (
	"io"
	"os"
	"runtime/debug"
)

// version is set by the linker.
var version = ""

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes a command line with the process's environment and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := program{env: os.LookupEnv, stdin: stdin, stdout: stdout, stderr: stderr}
	return p.run(args)
}

// buildVersion returns the version that the linker set. Without one it is the module's version
// after "go install MODULE@VERSION", or "dev" and the commit after a build in a checkout.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = "-" + s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-dirty"
		}
	}
	return "dev" + commit + changed
}
