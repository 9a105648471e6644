//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// findNginx returns nginx's path; if it is missing and this user may, the
// distribution's package is installed.
func findNginx(ctx context.Context) (string, error) {
	look := func() (string, error) {
		for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
			if path, err := exec.LookPath(name); err == nil {
				return path, nil
			}
		}
		return "", errors.New("nginx is not installed (apt-get install nginx)")
	}
	path, err := look()
	if err == nil || os.Getuid() != 0 {
		return path, err
	}
	aptGet, lookErr := exec.LookPath("apt-get")
	if lookErr != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "bench: installing the distribution's nginx")
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for _, args := range [][]string{{"update", "-qq"}, {"install", "-qq", "-y", "--no-install-recommends", "nginx"}} {
		cmd := exec.CommandContext(ctx, aptGet, args...)
		// In run level 1 the package does not start its service.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("apt-get %s: %w: %s", args[0], err, out)
		}
	}
	return look()
}

// nginxConfig is nginx as one would set it up before a language model: nothing
// is logged or written to disk, connections on both sides stay open, and answers
// are passed on as they come, because one URL serves both streams and JSON.
// Requests are read whole, into memory: measured against passing them on as they
// come, that is the cheaper way at 100 KB and no dearer at 1 KB.
const nginxConfig = `
daemon off;
%[3]sworker_processes 1;
worker_rlimit_nofile 16384;
pid nginx.pid;
error_log stderr error;
events { worker_connections 8192; }
http {
	access_log off;
	client_body_temp_path tmp-body;
	proxy_temp_path tmp-proxy;
	fastcgi_temp_path tmp-fastcgi;
	uwsgi_temp_path tmp-uwsgi;
	scgi_temp_path tmp-scgi;
	client_max_body_size 16m;
	client_body_buffer_size 256k;
	keepalive_requests 10000000;
	upstream model {
		server %[2]s;
		keepalive 4096;
		keepalive_requests 10000000;
	}
	server {
		listen %[1]s backlog=4096;
		location / {
			proxy_pass http://model;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
		}
	}
}
`

func nginxTarget(ctx context.Context, binary, addr, upstream, dir string) (*target, error) {
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n" // else the worker could not use files in dir
	}
	config := filepath.Join(dir, "nginx.conf")
	content := fmt.Sprintf(nginxConfig, addr, upstream, user)
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		return nil, err
	}
	version, err := exec.CommandContext(ctx, binary, "-v").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("nginx -v: %w: %s", err, version)
	}
	_, number, _ := strings.Cut(strings.TrimSpace(string(version)), "/")
	return &target{
		name: nginx, addr: addr, version: number,
		program: program{name: nginx, argv: []string{binary, "-p", dir, "-c", config, "-e", "stderr"}, env: []string{"PATH=" + os.Getenv("PATH")}},
	}, nil
}
