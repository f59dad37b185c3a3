// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
)

const grace = 30 * time.Second

// A Manager is the manager of an installed provider. It can be stopped or killed, and restarted.
type Manager struct {
	stack      *Stack
	components *components
	install    ProviderInstall
	ports      managerPorts
	replica    string // name of the replica; empty for the first manager, which webhooks call
	account    string // name of the service account; empty for that of the provider

	mu      sync.Mutex
	process *process.Process
}

type managerPorts struct {
	webhook, health, metrics int
}

func (s *Stack) newManager(c *components, install ProviderInstall) *Manager {
	if install.HealthFlag == "" {
		install.HealthFlag = "--health-addr"
	}
	if install.MetricsArgs == nil {
		install.MetricsArgs = []string{"--diagnostics-address=127.0.0.1:%d", "--insecure-diagnostics=true"}
	}
	return &Manager{stack: s, components: c, install: install}
}

// Replica returns another manager of the same provider. It has a separate log and separate ports, and can be killed
// while webhooks and conversions continue to call m. args are appended to those of m. They must ensure that the two
// managers reconcile different objects.
func (m *Manager) Replica(ctx context.Context, name string, args ...string) (*Manager, error) {
	install := m.install
	install.Args = slices.Concat(install.Args, args)
	replica := &Manager{stack: m.stack, components: m.components, install: install, replica: name}
	if err := replica.pickPorts(ctx); err != nil {
		return nil, err
	}
	m.stack.mu.Lock()
	defer m.stack.mu.Unlock()
	m.stack.managers = append(m.stack.managers, replica)
	return replica, nil
}

// As makes a replica use another service account in the provider's namespace. It applies the objects, which grant the
// rights of the account. Call it before the replica starts.
func (m *Manager) As(ctx context.Context, account string, objects ...unstructured.Unstructured) error {
	m.account = account
	if err := m.stack.Apply(ctx, objects...); err != nil {
		return err
	}
	if err := m.stack.AwaitRights(ctx, objects...); err != nil {
		return err
	}
	return m.stack.writeIdentity(ctx, m)
}

// Name returns the provider's name, such as infrastructure-vcd, with the suffix of a replica.
func (m *Manager) Name() string {
	if m.replica != "" {
		return m.components.provider + "-" + m.replica
	}
	return m.components.provider
}

// Namespace returns the namespace of the provider.
func (m *Manager) Namespace() string {
	return m.components.namespace.GetName()
}

// PID returns the ID of the running process.
func (m *Manager) PID() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process.PID()
}

// LogPath returns the path of the log of all runs.
func (m *Manager) LogPath() string {
	return filepath.Join(m.stack.LogDir(), m.Name()+".log")
}

// MetricsURL returns the URL of the Prometheus metrics.
func (m *Manager) MetricsURL() string {
	return fmt.Sprintf("http://127.0.0.1:%d/metrics", m.ports.metrics)
}

// Start starts the manager and waits until it is ready and its webhooks respond.
func (m *Manager) Start(ctx context.Context) error {
	if m.running() {
		return fmt.Errorf("%s is already running", m.Name())
	}
	if err := m.rewire(ctx); err != nil {
		return err
	}
	env := slices.Concat(cleanEnvironment(), m.components.environment(), []string{"KUBECONFIG=" + m.kubeconfig()},
		m.install.Env)
	p, err := process.Start(process.Spec{
		Name: m.Name(),
		Path: m.install.ManagerBinary,
		Args: m.args(),
		Env:  env,
		Dir:  m.stack.dir,
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.process = p
	m.mu.Unlock()
	if err := m.stack.waitReady(ctx, p, m.Healthy); err != nil {
		return errors.Join(err, p.Kill())
	}
	m.stack.watch(p)
	return nil
}

// rewire makes webhooks and conversions call this manager, unless it is a replica.
func (m *Manager) rewire(ctx context.Context) error {
	if m.replica != "" {
		return nil
	}
	crds, webhooks, err := m.components.rewired(m.ports.webhook, m.stack.pki.caPEM)
	if err != nil {
		return err
	}
	return m.stack.Apply(ctx, slices.Concat(crds, webhooks)...)
}

// WebhookURL returns the address of the manager's webhook server. Its certificate is signed by [Stack.CA].
func (m *Manager) WebhookURL() string { return fmt.Sprintf("https://127.0.0.1:%d", m.ports.webhook) }

// args returns the arguments of the Deployment, those that differ without containers, and those of the caller. Later
// arguments take precedence.
func (m *Manager) args() []string {
	ours := []string{
		"--leader-elect=false",
		fmt.Sprintf("%s=127.0.0.1:%d", m.install.HealthFlag, m.ports.health),
		"--webhook-port=" + strconv.Itoa(m.ports.webhook),
		"--webhook-cert-dir=" + m.stack.pki.dir,
	}
	for _, arg := range m.install.MetricsArgs {
		if len(arg) > 2 && arg[len(arg)-2:] == "%d" {
			arg = arg[:len(arg)-2] + strconv.Itoa(m.ports.metrics)
		}
		ours = append(ours, arg)
	}
	return slices.Concat(m.components.container().Args, ours, m.install.Args)
}

func (m *Manager) pickPorts(ctx context.Context) error {
	ports, err := process.ReservePorts(ctx, 3)
	if err != nil {
		return err
	}
	m.ports = managerPorts{webhook: ports[0], health: ports[1], metrics: ports[2]}
	return nil
}

// Healthy checks the manager's /readyz and its webhook server.
func (m *Manager) Healthy(ctx context.Context) error {
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if err := probe(ctx, direct, fmt.Sprintf("http://127.0.0.1:%d/readyz", m.ports.health)); err != nil {
		return err
	}
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: time.Second},
		Config:    &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // only checks for a response
	}
	conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", m.ports.webhook))
	if err != nil {
		return err
	}
	return conn.Close()
}

// Kill kills the manager, as a crash does.
func (m *Manager) Kill() error {
	if p := m.current(); p != nil {
		return p.Kill()
	}
	return nil
}

// Stop terminates the manager, and kills it after [grace].
func (m *Manager) Stop() error {
	if p := m.current(); p != nil {
		return p.Stop(grace)
	}
	return nil
}

func (m *Manager) current() *process.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process
}

func (m *Manager) running() bool {
	p := m.current()
	if p == nil {
		return false
	}
	select {
	case <-p.Done():
		return false
	default:
		return true
	}
}
