package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is where things are: the pins and scripts, and the cache.
type tree struct{ clients, at string }

func (t tree) python() string  { return filepath.Join(t.at, "venv", "bin", "python") }
func (t tree) source() string  { return filepath.Join(t.at, "source", "vendor", "llama.cpp") }
func (t tree) server() string  { return filepath.Join(t.at, "build", "bin", "llama-server") }
func (t tree) model() string   { return filepath.Join(t.at, "random.gguf") }
func (t tree) gateway() string { return filepath.Join(t.at, "rebound") }

// command runs a program to its end; what it prints is shown if it fails.
func (t tree) command(ctx context.Context, dir, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// install makes ready what is not there yet: delete a part of the cache to have it made anew.
func (t tree) install(ctx context.Context) error {
	pins, err := os.ReadFile(filepath.Join(t.clients, "source.txt"))
	if err != nil {
		return err
	}
	pin := strings.TrimSpace(string(pins))
	archive := filepath.Join(t.at, strings.Replace(pin, "==", "-", 1)+".tar.gz")
	for _, step := range []struct {
		made string
		says string
		do   func() error
	}{
		{t.python(), "", func() error {
			if err := t.command(ctx, "", "python3", "-m", "venv", filepath.Join(t.at, "venv")); err != nil {
				return err
			}
			return t.command(ctx, "", t.python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", filepath.Join(t.clients, "requirements.txt"))
		}},
		{archive, "getting " + pin, func() error {
			return t.command(ctx, "", t.python(), "-m", "pip", "download", "--no-binary", ":all:", "--no-deps", "-d", t.at, pin)
		}},
		{t.source(), "", func() error {
			source := filepath.Join(t.at, "source")
			if err := os.MkdirAll(source, 0o755); err != nil {
				return err
			}
			return t.command(ctx, "", "tar", "xzf", archive, "-C", source, "--strip-components", "1")
		}},
		{t.server(), "building llama-server: ten minutes and more", func() error {
			build := filepath.Join(t.at, "build")
			if err := t.command(ctx, "", "cmake", "-S", t.source(), "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_UI=OFF",
				"-DLLAMA_USE_PREBUILT_UI=OFF", "-DLLAMA_OPENSSL=OFF", "-DGGML_NATIVE=OFF"); err != nil {
				return err
			}
			return t.command(ctx, "", "cmake", "--build", build, "-j2", "--target", "llama-server")
		}},
		{t.model(), "", func() error {
			return t.command(ctx, "", t.python(), filepath.Join(t.clients, "model.py"), t.model())
		}},
	} {
		if _, err := os.Stat(step.made); err == nil {
			continue
		}
		if step.says != "" {
			fmt.Println(step.says)
		}
		if err := step.do(); err != nil {
			return err
		}
	}
	return nil
}
