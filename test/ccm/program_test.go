// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/memory"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
)

// A controller is a cloud controller manager process that can be killed and started again.
type controller struct {
	name   string
	dir    string
	binary string
	args   []string
	env    []string // added to the environment of the tests without its proxy variables

	port int

	mu      sync.Mutex
	process *process.Process
}

// newController writes the files of a cloud controller manager. The program runs with the arguments in its manifest,
// followed by the given ones.
func newController(ctx context.Context, h *cluster, name string, files map[string]string, config string,
	args ...string,
) (*controller, error) {
	ports, err := process.ReservePorts(ctx, 1)
	if err != nil {
		return nil, err
	}
	c := &controller{name: name, dir: filepath.Join(h.Dir(), "ccm-"+name), binary: h.binary, port: ports[0]}
	if err := c.write(files); err != nil {
		return nil, err
	}
	kubeconfig := c.kubeconfig()
	server, err := view(h.Stack, name)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.views = append(h.views, server)
	h.mu.Unlock()
	if err := writeKubeconfig(ctx, h.Stack, server, kubeconfig); err != nil {
		return nil, err
	}
	c.args = slices.Concat(h.shippedArgs, []string{
		"--cloud-config=" + filepath.Join(c.dir, config),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--credentials=" + filepath.Join(c.dir, "basic-auth"),
		"--authorization-kubeconfig=" + kubeconfig,
		"--probe-address=",
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--v=4",
		"--tls-cert-file=" + filepath.Join(h.Dir(), "pki", "tls.crt"),
		"--tls-private-key-file=" + filepath.Join(h.Dir(), "pki", "tls.key"),
	}, args)
	return c, nil
}

// kubeconfig returns the path of the controller's kubeconfig.
func (c *controller) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// write writes files below the folder of the controller, each atomically.
func (c *controller) write(files map[string]string) error {
	for path, content := range files {
		path = filepath.Join(c.dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return fmt.Errorf("creating a folder of the controller: %w", err)
		}
		if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing a file of the controller: %w", err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			return fmt.Errorf("writing a file of the controller: %w", err)
		}
	}
	return nil
}

// writeKubeconfig writes a kubeconfig with only the permissions of the controller's service account.
func writeKubeconfig(ctx context.Context, s *stack.Stack, server *httptest.Server, path string) error {
	clients, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return err
	}
	day := int64(24 * 3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	token, err := clients.CoreV1().ServiceAccounts(addons.Namespace).CreateToken(ctx, serviceAccount, request,
		metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a token of the controller's service account: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server: server.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{
			Type:  "CERTIFICATE",
			Bytes: server.Certificate().Raw,
		}),
	}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	return clientcmd.WriteToFile(*config, path)
}

// Start starts the program and waits until it is healthy.
func (c *controller) Start(ctx context.Context) error {
	p, err := process.Start(process.Spec{
		Name: "ccm-" + c.name,
		Path: c.binary,
		Args: append(slices.Clone(c.args), "--secure-port="+strconv.Itoa(c.port)),
		Dir:  c.dir,
		Env: append(slices.DeleteFunc(os.Environ(),
			func(e string) bool { return strings.Contains(strings.ToUpper(e), "_PROXY=") }), c.env...),
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.process = p
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 2*timeout)
	defer cancel()
	for {
		if c.healthy(ctx) == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("the controller exited unexpectedly: %s", p.Tail(20))
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the controller did not become healthy: %s", p.Tail(20)), p.Kill())
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// direct trusts any certificate, because it only probes the program.
var direct = &http.Client{
	Timeout: 5 * time.Second,
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	},
}

func (c *controller) healthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/healthz", c.port),
		http.NoBody)
	if err != nil {
		return err
	}
	response, err := direct.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the health check returned %s", response.Status)
	}
	return nil
}

func (c *controller) current() *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

// Kill kills the program, like a crash.
func (c *controller) Kill() error {
	if p := c.current(); p != nil {
		return p.Kill()
	}
	return nil
}

// Stop terminates the program gracefully: it completes its work in flight. A program that is killed during a login
// loses its single-use token.
func (c *controller) Stop() error {
	if p := c.current(); p != nil {
		return p.Stop(timeout)
	}
	return nil
}

// Restart stops the program and starts it again.
func (c *controller) Restart(ctx context.Context) error {
	return errors.Join(c.Stop(), c.Start(ctx))
}

// died returns an error if the program exited unexpectedly.
func (c *controller) died() error {
	if p := c.current(); p != nil {
		return p.Err()
	}
	return nil
}

// log returns the output of all runs of the program.
func (c *controller) log() string {
	p := c.current()
	if p == nil {
		return ""
	}
	content, err := os.ReadFile(p.LogPath())
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// memory returns the memory of the program.
func (c *controller) memory() (memory.Use, error) {
	return memory.Of(c.current().PID())
}

// validate runs the program with --validate-config and returns its output.
func (c *controller) validate(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, c.binary, append(slices.Clone(c.args), "--validate-config")...)
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &out
	err := cmd.Run()
	return out.String(), err
}
