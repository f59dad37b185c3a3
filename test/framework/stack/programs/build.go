// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
)

// needed is the free space in the cache that a full build requires, in bytes.
const needed = 1 << 30

// Options are the options of a build.
type Options struct {
	// Cache is the folder for built programs. If it is empty, it is DefaultCache.
	Cache string
	// Source is the folder of the nested modules. If it is empty, it is found from the working folder.
	Source string
	// Assets is a folder with installed programs, such as the folder of KUBEBUILDER_ASSETS.
	Assets string
	// Present makes the build copy installed programs of the pinned version, from Assets or PATH.
	Present bool
	// Out receives the progress. Nil discards it.
	Out io.Writer
	// Only contains the names of the programs that are needed. Each of their groups is built as a whole. Nil means all
	// groups.
	Only []string
}

// builder contains the shared state of the steps of a build.
type builder struct {
	source  string
	groups  []Group
	folders map[string]string
	set     *Set
	show    *progress
	assets  string
	reuse   bool
}

// Build builds the missing programs. If none are missing, it returns at once. Processes may call it concurrently: the
// second waits for the first. A killed build leaves no incomplete program behind.
func Build(ctx context.Context, opts Options) (*Set, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	return build(ctx, opts, only(groups(), opts.Only))
}

// BuildGroups is like Build for programs of other modules.
func BuildGroups(ctx context.Context, opts Options, groups ...Group) (*Set, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	return build(ctx, opts, groups)
}

// only returns the groups that contain at least one of the named programs. With nil, it returns all groups.
func only(all []Group, names []string) []Group {
	if names == nil {
		return all
	}
	return slices.DeleteFunc(all, func(g Group) bool {
		return !slices.ContainsFunc(g.Programs, func(p Program) bool { return slices.Contains(names, p.Name) })
	})
}

func build(ctx context.Context, opts Options, groups []Group) (*Set, error) {
	set, folders, err := plan(groups, opts.Source, opts.Cache)
	if err != nil {
		return nil, err
	}
	if len(set.missing()) == 0 {
		return set, set.link()
	}
	if err := os.MkdirAll(opts.Cache, 0o755); err != nil { //nolint:gosec // a cache of public programs
		return nil, fmt.Errorf("creating the cache folder: %w", err)
	}
	unlock, err := process.LockWait(ctx, filepath.Join(opts.Cache, "lock"), func(holder string) {
		_, _ = fmt.Fprintf(opts.Out, "Another process (%s) is building the programs, waiting for it.\n", holder)
	})
	if err != nil {
		return nil, err
	}
	defer unlock()
	b := &builder{
		source:  opts.Source,
		groups:  groups,
		folders: folders,
		set:     set,
		show:    newProgress(opts.Out, len(set.missing())),
		assets:  opts.Assets,
		reuse:   opts.Present,
	}
	if err := b.all(ctx); err != nil {
		return nil, explain(err, opts.Cache)
	}
	return set, set.link()
}

func (o Options) withDefaults() (Options, error) {
	var err error
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Cache == "" {
		if o.Cache, err = DefaultCache(); err != nil {
			return o, err
		}
	}
	if o.Source == "" {
		o.Source, err = Source(".")
	}
	return o, err
}

func (b *builder) all(ctx context.Context) error {
	if len(b.set.missing()) == 0 {
		return nil // built by the process that held the lock
	}
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("the programs are built from source and need a Go toolchain: %w", err)
	}
	if free, ok := process.FreeSpace(filepath.Dir(b.set.dir)); ok && free < needed {
		return fmt.Errorf("%d MiB free, %d needed: %w", free>>20, needed>>20, syscall.ENOSPC)
	}
	if err := b.copyInstalled(ctx); err != nil {
		return err
	}
	b.announce()
	for _, g := range b.groups {
		if err := b.group(ctx, g); err != nil {
			return err
		}
	}
	return b.renderAll(ctx)
}

// renderAll renders the components of all providers.
func (b *builder) renderAll(ctx context.Context) error {
	for _, g := range b.groups {
		for _, p := range g.Programs {
			if err := b.render(ctx, g, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builder) group(ctx context.Context, g Group) error {
	if err := b.prepare(g); err != nil {
		return err
	}
	for _, p := range g.Programs {
		target := b.set.bins[p.Name]
		if exists(target) {
			continue
		}
		done := b.show.start("Building", p.Name)
		err := b.compile(ctx, g, p, target)
		done(err)
		if err != nil {
			return fmt.Errorf("building %s: %w", p.Name, err)
		}
	}
	return nil
}

// prepare creates the folder of a group.
func (b *builder) prepare(g Group) error {
	folder := b.folders[g.Name]
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // a cache of public programs
		return fmt.Errorf("creating a cache folder: %w", err)
	}
	return removeLeftovers(folder)
}

func (b *builder) compile(ctx context.Context, g Group, p Program, target string) error {
	temp := target + tempSuffix
	args := slices.Concat([]string{"build"}, buildFlags(), []string{"-ldflags", g.Ldflags, "-o", temp, p.Package})
	if _, err := b.goTool(ctx, g, args...); err != nil {
		return err
	}
	return os.Rename(temp, target)
}

// buildFlags returns the flags that hack/images uses. With equal flags, Go compiles shared packages only once.
func buildFlags() []string {
	return []string{"-trimpath", "-tags=grpcnotrace", "-buildvcs=false", "-mod=readonly"}
}

// render renders the components of a provider from its maintainers' kustomization.
func (b *builder) render(ctx context.Context, g Group, p Program) error {
	if p.Config == "" || exists(b.set.components[p.Name]) {
		return nil
	}
	done := b.show.start("Rendering the components of", p.Name)
	err := b.renderTo(ctx, g, p, b.set.components[p.Name])
	done(err)
	if err != nil {
		return fmt.Errorf("rendering the components of %s: %w", p.Name, err)
	}
	return nil
}

func (b *builder) renderTo(ctx context.Context, g Group, p Program, target string) error {
	dir, err := b.goTool(ctx, g, "list", "-m", "-f", "{{.Dir}}", p.Module)
	if err != nil {
		return err
	}
	config := filepath.Join(strings.TrimSpace(string(dir)), filepath.FromSlash(p.Config))
	out, err := run(exec.CommandContext(ctx, b.set.bins[Kubectl], "kustomize", config)) //nolint:gosec // our own program
	if err != nil {
		return err
	}
	temp := target + tempSuffix
	if err := os.WriteFile(temp, out, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, target)
}

// goTool runs the go command in the module of a group. It ignores the caller's GOFLAGS and GOWORK, which would change
// the result.
func (b *builder) goTool(ctx context.Context, g Group, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own arguments
	cmd.Dir = g.folder(b.source)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it stops its compilers
	cmd.WaitDelay = 5 * time.Second
	cgo := "CGO_ENABLED=0"
	if g.CGO {
		cgo = "CGO_ENABLED=1"
	}
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", cgo, "GOOS=", "GOARCH=", "PWD="+cmd.Dir)
	return run(cmd)
}

// run returns the output of a command. An error contains the last lines of its standard error.
func run(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args[:2], " "), err, lastLines(stderr.String(), 12))
	}
	return out, nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// explain adds a remedy to known errors.
func explain(err error, cache string) error {
	if errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "no space left on device") {
		return fmt.Errorf("the disk is full: the programs need 1 GiB in %s, and Go's build cache (go env GOCACHE) and module cache 6 GiB more on a first build; free some space or choose another cache folder: %w", cache, err)
	}
	return err
}

const tempSuffix = ".unfinished"

// removeLeftovers removes incomplete files of a killed build. The caller holds the lock.
func removeLeftovers(folder string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*"+tempSuffix))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing the leftovers of an earlier build: %w", err)
		}
	}
	return nil
}

// link creates a folder with links to all programs under their names.
func (s *Set) link() error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil { //nolint:gosec // a cache of public programs
		return fmt.Errorf("creating the directory of programs: %w", err)
	}
	for name, path := range s.bins {
		err := os.Symlink(path, filepath.Join(s.dir, name))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("linking %s: %w", name, err)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// round rounds a duration for output.
func round(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
