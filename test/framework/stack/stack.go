// SPDX-License-Identifier: Apache-2.0

// Package stack runs a management cluster without containers: a real etcd, kube-apiserver and kube-controller-manager,
// the managers of Cluster API, kubeadm bootstrap and control plane and in-cluster IPAM, as processes of this machine. A
// provider under test is installed from the components file that it ships.
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

// Part is a provider that the stack brings.
type Part string

// The parts.
const (
	Core         Part = programs.CoreManager
	Bootstrap    Part = programs.BootstrapManager
	ControlPlane Part = programs.ControlPlaneManager
	IPAM         Part = programs.IPAMManager
)

// allParts is every part.
func allParts() []Part {
	return []Part{Core, Bootstrap, ControlPlane, IPAM}
}

// Options of a stack.
type Options struct {
	// Dir holds data, logs, certificates and kubeconfigs; one stack at a time can use it.
	Dir string
	// Cache is where the built programs are kept; empty for the default place.
	Cache string
	// Out receives progress; nil for none.
	Out io.Writer
	// Parts are the providers to run; nil for all of them. With an empty list only their CRDs are missing as well.
	Parts []Part
	// Env is added to the environment of the parts, such as HTTPS_PROXY to reach workload clusters.
	Env []string
	// Variables fill in ${NAME} in the components of the parts, such as EXP_MACHINE_TAINT_PROPAGATION: "true".
	Variables map[string]string
	// APIServerArgs follow the arguments of the API server, such as --runtime-config=….
	APIServerArgs []string
	// AuditNamespace is whose service accounts' requests are logged; empty for none.
	AuditNamespace string
}

// Stack is a running management cluster.
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

	auditNamespace string
	apiServerExtra []string

	base []*process.Process // In the order they were started.

	mu       sync.Mutex
	managers []*Manager
}

// Start builds what is missing, removes what a killed run left in Dir and starts everything. When it returns, all
// webhooks answer.
func Start(ctx context.Context, opts Options) (*Stack, error) {
	if opts.Out == nil {
		opts.Out = io.Discard
	}
	if opts.Parts == nil {
		opts.Parts = allParts()
	}
	set, err := programs.Build(ctx, programs.Options{Cache: opts.Cache, Out: opts.Out})
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
	}
	if err := s.claim(); err != nil {
		return nil, err
	}
	if err := s.start(ctx, opts); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// neededSpace is for etcd, which preallocates, and for logs.
const neededSpace = 512 << 20

// claim makes the folder ours and clean.
func (s *Stack) claim() error {
	if err := os.MkdirAll(s.dir, 0o750); err != nil {
		return fmt.Errorf("creating the directory of the stack: %w", err)
	}
	if free, ok := process.FreeSpace(s.dir); ok && free < neededSpace {
		return fmt.Errorf("the disk is full: the stack needs %d MiB in %s, and there are %d", neededSpace>>20, s.dir,
			free>>20)
	}
	unlock, err := process.Lock(filepath.Join(s.dir, "lock"))
	if locked := (*process.LockedError)(nil); errors.As(err, &locked) {
		return fmt.Errorf("another stack (%s) runs in %s: end it or choose another folder: %w", locked.Holder, s.dir,
			err)
	}
	if err != nil {
		return err
	}
	s.unlock = unlock
	found, ended, err := process.RemoveLeftovers(s.dir)
	if found > 0 {
		_, _ = fmt.Fprintf(s.out, "Leftovers of an earlier run removed (%d programs still ran)\n", len(ended))
	}
	if err != nil {
		return errors.Join(err, s.Stop())
	}
	for _, sub := range []string{"logs", "etcd", "pki", "clusterctl"} {
		if err := os.RemoveAll(filepath.Join(s.dir, sub)); err != nil {
			return errors.Join(fmt.Errorf("removing what an earlier run left: %w", err), s.Stop())
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
		return fmt.Errorf("making a client: %w", err)
	}
	if s.clients, err = kubernetes.NewForConfig(s.config); err != nil {
		return fmt.Errorf("making a client: %w", err)
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

// RESTConfig is the administrator's access to the API server.
func (s *Stack) RESTConfig() *rest.Config {
	return rest.CopyConfig(s.config)
}

// Client is the administrator's client; it knows unstructured objects and Kubernetes' own types.
func (s *Stack) Client() client.Client {
	return s.client
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (s *Stack) Kubeconfig() string {
	return filepath.Join(s.dir, "kubeconfig")
}

// Dir is the folder of the stack.
func (s *Stack) Dir() string {
	return s.dir
}

// LogDir is the folder with the log of each program.
func (s *Stack) LogDir() string {
	return filepath.Join(s.dir, "logs")
}

// Bin is the path of a program, by the names of package programs.
func (s *Stack) Bin(name string) string {
	return s.programs.Bin(name)
}

// Manager is the manager of an installed provider by its name, such as ipam-in-cluster; nil when there is none.
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

// Failed receives the error of a program that ended by itself.
func (s *Stack) Failed() <-chan error {
	return s.failed
}

// watch reports a program that ends by itself.
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

// Stop takes everything down: the managers first, the API server and etcd last.
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
		errs = append(errs, p.Kill()) // Their data is thrown away: no reason to wait for a clean end.
	}
	s.base = nil
	errs = append(errs, os.RemoveAll(filepath.Join(s.dir, "etcd")))
	if s.unlock != nil {
		s.unlock()
		s.unlock = nil
	}
	return errors.Join(errs...)
}
