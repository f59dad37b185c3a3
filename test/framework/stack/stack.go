// SPDX-License-Identifier: Apache-2.0

// Package stack runs a management cluster without containers, as processes of this machine: a real etcd, kube-apiserver
// and kube-controller-manager, and the managers of Cluster API, the kubeadm bootstrap and control plane providers, and
// in-cluster IPAM. A provider under test is installed from the components file that it ships.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// A Part is a provider that the stack includes.
type Part string

// The parts of a stack.
const (
	Core         Part = programs.CoreManager
	Bootstrap    Part = programs.BootstrapManager
	ControlPlane Part = programs.ControlPlaneManager
	IPAM         Part = programs.IPAMManager
)

// allParts returns all parts.
func allParts() []Part {
	return []Part{Core, Bootstrap, ControlPlane, IPAM}
}

// Programs returns the names of the programs that a stack with these parts needs.
func Programs(parts []Part) []string {
	names := []string{
		programs.Etcd,
		programs.KubeAPIServer,
		programs.KubeControllerManager,
		programs.Kubectl,
		programs.Clusterctl,
	}
	for _, part := range parts {
		names = append(names, string(part))
	}
	return names
}

// Options are the options of a stack.
type Options struct {
	// Dir contains data, logs, certificates and kubeconfigs. Only one stack at a time can use it.
	Dir string
	// Cache is the folder for built programs. If it is empty, it is the default folder.
	Cache string
	// Out receives the progress. Nil discards it.
	Out io.Writer
	// Parts are the providers to run. Nil means all of them. With an empty list, their CRDs are not installed either.
	Parts []Part
	// Env is appended to the environment of the parts, for example HTTPS_PROXY to reach workload clusters.
	Env []string
	// Variables replace ${NAME} in the components of the parts, for example EXP_MACHINE_TAINT_PROPAGATION: "true".
	Variables map[string]string
	// APIServerArgs are appended to the arguments of the API server, for example --runtime-config=….
	APIServerArgs []string
	// AuditNamespace is the namespace whose service accounts' requests are logged. If it is empty, none are logged.
	AuditNamespace string
	// StorageVersionsOnly leaves out all versions of the providers' kinds but those that are stored. The API server
	// keeps a watch cache for each version, and converts each change to all of them. That is a quarter of its work in a
	// test that only uses the stored versions.
	StorageVersionsOnly bool
}

// A Stack is a running management cluster.
type Stack struct {
	dir      string
	out      io.Writer
	programs *programs.Set
	pki      *pki
	config   *rest.Config
	client   client.Client
	clients  kubernetes.Interface
	unlock   func()
	failed   chan error

	auditNamespace      string
	apiServerExtra      []string
	storageVersionsOnly bool

	base []*process.Process // in start order

	mu       sync.Mutex
	managers []*Manager
}

// Start builds missing programs, cleans up after a killed run in Dir, and starts everything. When it returns, all
// webhooks respond.
func Start(ctx context.Context, opts Options) (*Stack, error) {
	if opts.Out == nil {
		opts.Out = io.Discard
	}
	if opts.Parts == nil {
		opts.Parts = allParts()
	}
	set, err := programs.Build(ctx, programs.Options{Cache: opts.Cache, Out: opts.Out, Only: Programs(opts.Parts)})
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, err
	}
	s := &Stack{
		dir:            dir,
		out:            opts.Out,
		programs:       set,
		failed:         make(chan error, 16),
		auditNamespace: opts.AuditNamespace,
		apiServerExtra: opts.APIServerArgs,

		storageVersionsOnly: opts.StorageVersionsOnly,
	}
	if err := s.claim(); err != nil {
		return nil, err
	}
	if err := s.start(ctx, opts); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// neededSpace is the space for etcd, which preallocates, and for logs, in bytes.
const neededSpace = 512 << 20

// claim locks the folder, checks its free space, and cleans it up.
func (s *Stack) claim() error {
	if err := os.MkdirAll(s.dir, 0o750); err != nil {
		return fmt.Errorf("creating the directory of the stack: %w", err)
	}
	if free, ok := process.FreeSpace(s.dir); ok && free < neededSpace {
		return fmt.Errorf("the disk is full: the stack needs %d MiB in %s, and %d are free", neededSpace>>20, s.dir,
			free>>20)
	}
	unlock, err := process.Lock(filepath.Join(s.dir, "lock"))
	if locked := (*process.LockedError)(nil); errors.As(err, &locked) {
		return fmt.Errorf("another stack (%s) runs in %s: stop it or choose another folder: %w", locked.Holder, s.dir,
			err)
	}
	if err != nil {
		return err
	}
	s.unlock = unlock
	found, ended, err := process.RemoveLeftovers(s.dir)
	if found > 0 {
		_, _ = fmt.Fprintf(s.out, "Leftovers of an earlier run removed (%d programs were still running)\n", len(ended))
	}
	if err != nil {
		return errors.Join(err, s.Stop())
	}
	for _, sub := range []string{"logs", "etcd", "pki", "clusterctl"} {
		if err := os.RemoveAll(filepath.Join(s.dir, sub)); err != nil {
			return errors.Join(fmt.Errorf("removing the leftovers of an earlier run: %w", err), s.Stop())
		}
	}
	return nil
}

func (s *Stack) start(ctx context.Context, opts Options) error {
	began := time.Now()
	var err error
	if s.pki, err = newPKI(filepath.Join(s.dir, "pki")); err != nil {
		return err
	}
	if err := s.startControlPlane(ctx); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(s.out, "API server is up after %s\n", seconds(began))
	if s.client, err = client.New(s.config, client.Options{}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if s.clients, err = kubernetes.NewForConfig(s.config); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if err := s.installParts(ctx, opts); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(s.out, "Management cluster is up after %s\n", seconds(began))
	return nil
}

func seconds(began time.Time) time.Duration {
	return time.Since(began).Round(100 * time.Millisecond)
}

// RESTConfig returns the administrator's access to the API server.
func (s *Stack) RESTConfig() *rest.Config {
	return rest.CopyConfig(s.config)
}

// Client returns the administrator's client. It supports unstructured objects and Kubernetes' own types.
func (s *Stack) Client() client.Client {
	return s.client
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (s *Stack) Kubeconfig() string {
	return filepath.Join(s.dir, "kubeconfig")
}

// Dir returns the folder of the stack.
func (s *Stack) Dir() string {
	return s.dir
}

// LogDir returns the folder with the logs of all programs.
func (s *Stack) LogDir() string {
	return filepath.Join(s.dir, "logs")
}

// Bin returns the path of a program. Its name is one of package programs.
func (s *Stack) Bin(name string) string {
	return s.programs.Bin(name)
}

// Manager returns the manager of an installed provider by its name, such as ipam-in-cluster, or nil if it is not
// installed.
func (s *Stack) Manager(name string) *Manager {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.managers {
		if m.Name() == name {
			return m
		}
	}
	return nil
}

// Failed returns a channel that receives the error of a program that exited unexpectedly.
func (s *Stack) Failed() <-chan error {
	return s.failed
}

// watch reports a program that exits unexpectedly.
func (s *Stack) watch(p *process.Process) {
	go func() {
		<-p.Done()
		if err := p.Err(); err != nil {
			select {
			case s.failed <- err:
			default:
			}
		}
	}()
}

// Stop stops all programs: the managers first, the API server and etcd last.
func (s *Stack) Stop() error {
	s.mu.Lock()
	managers := slices.Clone(s.managers)
	s.mu.Unlock()
	errs := make([]error, len(managers))
	var wait sync.WaitGroup
	for i, m := range managers {
		wait.Go(func() { errs[i] = m.Stop() })
	}
	wait.Wait()
	for _, p := range slices.Backward(s.base) {
		errs = append(errs, p.Kill()) // their data is discarded, so a clean exit is unnecessary
	}
	s.base = nil
	errs = append(errs, os.RemoveAll(filepath.Join(s.dir, "etcd")))
	if s.unlock != nil {
		s.unlock()
		s.unlock = nil
	}
	return errors.Join(errs...)
}
