package looptest

import (
	"fmt"
	"strings"
)

// progressing are situations in which an agent gets on, although most turns fail.
var progressing = []situation{
	{"a compiler, another file and fewer errors", Progress, func(s *session) func(int) step {
		left := s.between(14, 20)
		return func(i int) step {
			left -= s.between(1, 2)
			f := fmt.Sprintf("src/m%d.rs", i+1)
			out := fmt.Sprintf("   Compiling app v0.1.0 (/repo)\nerror[E0308]: mismatched types\n  --> %s:%d:9\n"+
				"error: could not compile `app` (bin \"app\") due to %d previous errors", f, s.between(3, 90), left)
			return run(fmt.Sprintf("sed -i 's/%s/%s/' %s && cargo build", s.noun(), s.noun(), f), out)
		}
	}},
	{"a fix and the same tests, fewer fail", Progress, func(s *session) func(int) step {
		names := s.idents(16)
		return func(i int) step {
			out := "F.F\n"
			for _, n := range names[i+1:] {
				out += "FAILED tests/test_all.py::" + n + " - assert 1 == 2\n"
			}
			return run("python fix.py && pytest -q", fmt.Sprintf("%s%d failed, %d passed in %s", out, 15-i, i+1, s.seconds()))
		}
	}},
	{"the tests of one file after the other", Progress, func(s *session) func(int) step {
		return func(int) step {
			n := s.noun() + fmt.Sprint(s.IntN(90))
			return run("pytest -q tests/test_"+n+".py", fmt.Sprintf("FAILED tests/test_%s.py::test_ok - assert False\n1 failed in %s", n, s.seconds()))
		}
	}},
	{"a linter with a falling count", Progress, func(s *session) func(int) step {
		left := s.between(40, 60)
		return func(int) step {
			left -= s.between(1, 5)
			return run("npx eslint src", fmt.Sprintf("/repo/src/app.js\n  1:1  error  'x' is not defined  no-undef\n\n✖ %d problems (%d errors, 0 warnings)", left, left))
		}
	}},
	{"the same tests with other messages", Progress, func(s *session) func(int) step {
		return func(int) step {
			return run("npm test", fmt.Sprintf("> app@1.0.0 test\n> jest\n\nFAIL src/app.test.js\n  ● renders\n\n"+
				"    TypeError: Cannot read properties of undefined (reading '%s')\n\nTests: 1 failed, 1 total\nTime: %s", s.ident(), s.seconds()))
		}
	}},
	{"other addresses that are not there", Progress, func(s *session) func(int) step {
		api := s.chance(0.5) && !s.style.text
		return func(int) step {
			u := "https://docs.example.com/" + s.ident()
			if api {
				return step{domain("fetch_url", arg{"url", u}), result{"Error: Request failed with status code 404", 1}}
			}
			return run("curl -fsS "+u, "curl: (22) The requested URL returned error: 404")
		}
	}},
	{"scripts that lack one module", Progress, func(s *session) func(int) step {
		m := s.ident()
		return func(int) step {
			f := s.path()
			return run("python "+f, fmt.Sprintf("Traceback (most recent call last):\n  File \"/repo/%s\", line 1, in <module>\n    import %s\nModuleNotFoundError: No module named '%s'", f, m, m))
		}
	}},
	{"the same build, the error stands elsewhere", Progress, func(s *session) func(int) step {
		line := s.between(2, 40)
		return func(int) step {
			line += s.between(1, 30)
			return run("make", fmt.Sprintf("cc -c main.c\nmain.c:%d:5: error: expected ';' before '}' token\nmake: *** [Makefile:3: main.o] Error 1", line))
		}
	}},
	{"a type checker, as many errors in other places", Progress, func(s *session) func(int) step {
		return func(int) step {
			return run("npx tsc --noEmit", fmt.Sprintf("src/%s.ts(%d,7): error TS2322: Type 'string' is not assignable to type 'number'.\nFound 1 error.", s.noun(), s.between(1, 400)))
		}
	}},
	{"a linker, another symbol", Progress, func(s *session) func(int) step {
		return func(int) step {
			return run("make -j4", fmt.Sprintf("/usr/bin/ld: main.o: in function `main':\nmain.c:(.text+0x1f): undefined reference to `%s'\n"+
				"collect2: error: ld returned 1 exit status\nmake: *** [Makefile:7: app] Error 1", s.ident()))
		}
	}},
	{"a package manager, another package", Progress, func(s *session) func(int) step {
		form := s.IntN(3)
		return func(int) step {
			n := s.noun() + "-" + s.noun() + fmt.Sprint(s.IntN(99))
			switch form {
			case 0:
				return run("pip install "+n, "ERROR: Could not find a version that satisfies the requirement "+n+" (from versions: none)\nERROR: No matching distribution found for "+n)
			case 1:
				return run("apt-get install -y "+n, "Reading package lists...\nBuilding dependency tree...\nE: Unable to locate package "+n)
			}
			return run("npm install", "npm error code ERESOLVE\nnpm error While resolving: app@1.0.0\nnpm error Found: "+n+"@18.2.0\nnpm error Fix the upstream dependency conflict")
		}
	}},
	{"other versions of one package", Progress, func(s *session) func(int) step {
		n := s.noun()
		return func(i int) step {
			v := fmt.Sprintf("%s==1.%d.0", n, i)
			return run("pip install "+v, "ERROR: Could not find a version that satisfies the requirement "+v+"\nERROR: No matching distribution found for "+v)
		}
	}},
	{"a deployment that gets further each time", Progress, func(s *session) func(int) step {
		return func(i int) step {
			return run("docker build -t app .", fmt.Sprintf("Step %d/14 : RUN ./install.sh\n ---> Running in %s\nThe command '/bin/sh -c ./install.sh' returned a non-zero code: 1", i+3, s.hex(12)))
		}
	}},
	{"one manifest after the other", Progress, func(s *session) func(int) step {
		return func(int) step {
			n := s.ident()
			return run("kubectl apply -f k8s/"+n+".yaml", "error: error validating \"k8s/"+n+".yaml\": error validating data: unknown field \"spec.replica\"")
		}
	}},
	{"a plan that names another resource", Progress, func(s *session) func(int) step {
		return func(int) step {
			n := s.ident()
			return run("terraform plan", fmt.Sprintf("\nError: Reference to undeclared resource\n\n  on main.tf line %d, in resource \"aws_instance\" \"%s\":\n\n"+
				"A managed resource has not been declared.", s.between(1, 300), n))
		}
	}},
	{"another edit and the same failure, in one command", Progress, func(s *session) func(int) step {
		return func(int) step {
			return run(fmt.Sprintf("cat > src/app.py <<'EOF'\n%sEOF\npytest -q", s.code(3)), "FAILED tests/test_app.py::test_all - assert 3 == 4\n1 failed in 0.12s")
		}
	}},
	{"one script after the other for the same cause", Progress, func(s *session) func(int) step {
		return func(int) step {
			return run(fmt.Sprintf("python -c \"import %s; print(%s.__file__)\"", s.ident(), s.noun()), "ImportError: libfoo.so.1: cannot open shared object file: No such file or directory")
		}
	}},
	{"other searches without a hit", Progress, func(s *session) func(int) step {
		return func(int) step { return step{op{do: grep, a: s.ident(), path: "src"}, result{"", 1}} }
	}},
	{"the first failing test is another one", Progress, func(s *session) func(int) step {
		return func(i int) step {
			n := s.ident()
			return run("pytest -x -q", fmt.Sprintf("FAILED tests/test_all.py::%s - assert 1 == 2\n!!!!! stopping after 1 failures !!!!!\n1 failed, %d passed in %s", n, 3*i, s.seconds()))
		}
	}},
	{"go packages, one after the other", Progress, func(s *session) func(int) step {
		return func(int) step {
			p := s.ident()
			return run("go test ./internal/"+p, fmt.Sprintf("--- FAIL: TestAll (0.00s)\n    all_test.go:12: got 1, want 2\nFAIL\nFAIL\texample.com/app/internal/%s\t%.3fs\nFAIL", p, s.Float64()))
		}
	}},
	{"go vet of all, another undefined name", Progress, func(s *session) func(int) step {
		f := s.path()
		return func(int) step {
			return run("go vet ./...", fmt.Sprintf("# example.com/app\nvet: ./%s:14:2: undefined: %s", strings.TrimPrefix(f, "./"), s.ident()))
		}
	}},
	{"rows of a table, one after the other", Progress, func(s *session) func(int) step {
		n := s.between(10, 900)
		return func(int) step {
			n += s.between(1, 9)
			return run("python migrate.py", fmt.Sprintf("migrated %d rows\npsycopg2.errors.UniqueViolation: duplicate key value violates unique constraint \"pk\"\n"+
				"DETAIL:  Key (id)=(%d) already exists.", n-1, n))
		}
	}},
	{"hosts, one after the other", Progress, func(s *session) func(int) step {
		return func(i int) step {
			return run(fmt.Sprintf("ssh web%d uptime", i+1), fmt.Sprintf("ssh: connect to host web%d port 22: Connection refused", i+1))
		}
	}},
	{"other texts to replace in one file", Progress, func(s *session) func(int) step {
		f := s.path()
		return func(int) step {
			o := s.change(f)
			return step{o, result{"Error: String to replace not found in file.", 1}}
		}
	}},
	{"other files that are not there", Progress, func(s *session) func(int) step {
		return func(int) step {
			f := s.path()
			return step{op{do: read, path: f}, result{"Error: File does not exist.", 1}}
		}
	}},
	{"customers, one after the other", Progress, func(s *session) func(int) step {
		return func(int) step {
			return step{domain("update_customer", arg{"email", s.ident() + "@example.com"}, arg{"status", "active"}), result{"Error: customer is locked", 1}}
		}
	}},
	{"another selector on a page", Progress, func(s *session) func(int) step {
		return func(int) step {
			return step{domain("browser_click", arg{"selector", "#" + s.ident()}), result{"Error: Timeout 5000ms exceeded.", 1}}
		}
	}},
	{"tests of which more pass", Progress, func(s *session) func(int) step {
		return func(i int) step {
			return run("cargo test", fmt.Sprintf("running 20 tests\ntest result: FAILED. %d passed; %d failed; 0 ignored; finished in %s", 5+i, 15-i, s.seconds()))
		}
	}},
	{"types of which fewer are wrong", Progress, func(s *session) func(int) step {
		left := 30
		return func(int) step {
			left -= s.between(1, 3)
			return run("mypy src", fmt.Sprintf("src/app.py:%d: error: Incompatible return value type\nFound %d errors in 3 files (checked 20 source files)", s.between(1, 90), left))
		}
	}},
	{"a change, then the same test, in turns", Progress, func(s *session) func(int) step {
		f := s.path()
		return func(i int) step {
			if i%2 == 0 {
				return step{s.change(f), s.updated(f)}
			}
			return run("pytest -q", "FAILED tests/test_app.py::test_all - assert 3 == 4\n1 failed in "+s.seconds())
		}
	}},
	{"reading on in one file", Progress, func(s *session) func(int) step {
		f := s.path()
		return func(i int) step { return step{op{do: read, path: f, n: 1 + 60*i}, result{out: s.code(6)}} }
	}},
	{"a tail that grows", Progress, func(s *session) func(int) step {
		log := ""
		return func(i int) step {
			log += fmt.Sprintf("%s epoch %d loss %.3f\n", s.stamp(), i, 2/float64(i+1))
			return step{sh("tail -n 20 train.log"), result{out: log}}
		}
	}},
	{"a long build whose middle changes", Progress, func(s *session) func(int) step {
		head, tail := s.code(120), s.code(400)
		return func(int) step {
			return run("make all", head+fmt.Sprintf("src/%s.c:%d: error: unknown type name '%s'\n", s.noun(), s.between(1, 900), s.ident())+tail+"make: *** [Makefile:2: all] Error 1")
		}
	}},
}
