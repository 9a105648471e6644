package looptest

// progressing are situations in which an agent makes progress, although most turns fail.
var progressing = []situation{
	{"a compiler, another file and fewer errors", `
		sed -i 's/{NOUN}/{NOUN2}/' src/m{i}.rs && cargo build !101> Compiling app v0.1.0 (/repo)\nerror[E0308]: mismatched types\n  --> src/m{i}.rs:{NUM}:9
		| error: could not compile 'app' (bin "app") due to {down} previous errors`},
	{"a fix and the same tests, fewer fail", `
		python fix.py && pytest -q !> F.F\nFAILED tests/test_all.py::{IDENT} - assert 1 == 2\n{down} failed, {up} passed in {SECS}`},
	{"the tests of one file after the other", `pytest -q tests/test_{IDENT}.py !> FAILED tests/test_{IDENT}.py::test_ok - assert False\n1 failed in {SECS}`},
	{"a linter with a falling count", `
		npx eslint src !> /repo/src/app.js\n  1:1  error  'x' is not defined  no-undef\n\n✖ {down} problems ({down} errors, 0 warnings)`},
	{"the same tests with other messages", `
		npm test !> > app@1.0.0 test\n> jest\n\nFAIL src/app.test.js\n  ● renders\n\n    TypeError: Cannot read properties of undefined (reading '{IDENT}')\n
		| Tests: 1 failed, 1 total\nTime: {SECS}`},
	{"other addresses that are not there", `
		@fetch_url url={ADDRESS} !> Error: Request failed with status code 404
		or
		curl -fsS {ADDRESS} !22> curl: (22) The requested URL returned error: 404`},
	{"scripts that lack one module", `
		python {PATH} !> Traceback (most recent call last):\n  File "/repo/{PATH}", line 1, in <module>\n    import {ident}
		| ModuleNotFoundError: No module named '{ident}'`},
	{"the same build, the error stands elsewhere", `
		make !2> cc -c main.c\nmain.c:{up}:5: error: expected ';' before '}' token\nmake: *** [Makefile:3: main.o] Error 1`},
	{"a type checker, as many errors in other places", `
		npx tsc --noEmit !2> src/{IDENT}.ts({NUM},7): error TS2322: Type 'string' is not assignable to type 'number'.\nFound 1 error.`},
	{"a linker, another symbol", `
		make -j4 !2> /usr/bin/ld: main.o: in function 'main':\nmain.c:(.text+0x1f): undefined reference to '{IDENT}'
		| collect2: error: ld returned 1 exit status\nmake: *** [Makefile:7: app] Error 1`},
	{"a package manager, another package", `
		pip install {IDENT} !> ERROR: Could not find a version that satisfies the requirement {IDENT} (from versions: none)
		| ERROR: No matching distribution found for {IDENT}
		or
		apt-get install -y {IDENT} !100> Reading package lists...\nBuilding dependency tree...\nE: Unable to locate package {IDENT}
		or
		npm install !> npm error code ERESOLVE\nnpm error While resolving: app@1.0.0\nnpm error Found: {IDENT}@18.2.0\nnpm error Fix the upstream dependency conflict`},
	{"other versions of one package", `
		pip install {noun}==1.{i}.0 !> ERROR: Could not find a version that satisfies the requirement {noun}==1.{i}.0
		| ERROR: No matching distribution found for {noun}==1.{i}.0`},
	{"a deployment that gets further each time", `
		docker build -t app . !> Step {i}/14 : RUN ./install.sh\n ---> Running in {HASH}\nThe command '/bin/sh -c ./install.sh' returned a non-zero code: 1`},
	{"one manifest after the other", `
		kubectl apply -f k8s/{IDENT}.yaml !> error: error validating "k8s/{IDENT}.yaml": error validating data: unknown field "spec.replica"`},
	{"a plan that names another resource", `
		terraform plan !> \nError: Reference to undeclared resource\n\n  on main.tf line {NUM}, in resource "aws_instance" "{IDENT}":\n
		| A managed resource has not been declared.`},
	{"another edit and the same failure, in one command", `
		cat > src/app.py <<'EOF'\n{CODE}EOF\npytest -q !> FAILED tests/test_app.py::test_all - assert 3 == 4\n1 failed in 0.12s`},
	{"one script after the other for the same cause", `
		python -c "import {IDENT}; print({NOUN}.__file__)" !> ImportError: libfoo.so.1: cannot open shared object file: No such file or directory`},
	{"other searches without a hit", `@grep {IDENT} src !>`},
	{"the first failing test is another one", `
		pytest -x -q !> FAILED tests/test_all.py::{IDENT} - assert 1 == 2\n!!!!! stopping after 1 failures !!!!!\n1 failed, {up} passed in {SECS}`},
	{"go packages, one after the other", `
		go test ./internal/{IDENT} !> --- FAIL: TestAll (0.00s)\n    all_test.go:12: got 1, want 2\nFAIL\nFAIL\texample.com/app/internal/{IDENT}\t{SECS}\nFAIL`},
	{"go vet of all, another undefined name", `go vet ./... !> # example.com/app\nvet: ./src/{ident}.go:14:2: undefined: {IDENT}`},
	{"rows of a table, one after the other", `
		python migrate.py !> migrated {up} rows\npsycopg2.errors.UniqueViolation: duplicate key value violates unique constraint "pk"
		| DETAIL:  Key (id)=({up}) already exists.`},
	{"hosts, one after the other", `ssh web{i} uptime !255> ssh: connect to host web{i} port 22: Connection refused`},
	{"other texts to replace in one file", `@edit {path} !> Error: String to replace not found in file.`},
	{"other files that are not there", `@read {PATH} !> Error: File does not exist.`},
	{"customers, one after the other", `@update_customer email={IDENT}@example.com status=active !> Error: customer is locked`},
	{"another selector on a page", `@browser_click selector=#{IDENT} !> Error: Timeout 5000ms exceeded.`},
	{"tests of which more pass", `cargo test !101> running 99 tests\ntest result: FAILED. {up} passed; {down} failed; 0 ignored; finished in {SECS}`},
	{"types of which fewer are wrong", `mypy src !> src/app.py:{NUM}: error: Incompatible return value type\nFound {down} errors in 3 files (checked 20 source files)`},
	{"a change, then the same test, in turns", `
		@edit {path} => {updated}
		pytest -q !> FAILED tests/test_app.py::test_all - assert 3 == 4\n1 failed in {SECS}`},
	{"reading on in one file", `@read {path} {offset} => {CODE}`},
	{"a tail that grows", `tail -n 2 train.log => {STAMP} epoch {i} loss 0.{NUM}\n{STAMP} epoch {i} saved {HASH}`},
	{"a long build whose middle changes", `make all !2> {long}src/{NOUN}.c:{NUM}: error: unknown type name '{IDENT}'\n{long2}make: *** [Makefile:2: all] Error 1`},
}
