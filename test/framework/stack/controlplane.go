// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

const (
	startTimeout = 5 * time.Minute // enough for several stacks that start on two cores
	pollEvery    = 50 * time.Millisecond
)

// rareGC halves the frequency of garbage collection in etcd and the API server. Their heaps are small, and collection
// takes a quarter of their CPU time.
const rareGC = "GOGC=200"

// memoryLimit makes the API server collect garbage more often when it uses half of the memory of a machine with 24 GiB.
// With 10,000 machines it uses 9 GiB.
const memoryLimit = "GOMEMLIMIT=12GiB"

// startControlPlane starts etcd, the API server and the controller manager.
func (s *Stack) startControlPlane(ctx context.Context) error {
	ports, err := process.ReservePorts(ctx, 3)
	if err != nil {
		return err
	}
	data := filepath.Join(s.dir, "etcd")
	if err := os.RemoveAll(data); err != nil {
		return fmt.Errorf("removing old data: %w", err)
	}
	etcdURL := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	peerURL := fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	etcd, err := s.run(programs.Etcd, []string{
		"--data-dir=" + data,
		"--unsafe-no-fsync",
		"--log-level=warn",
		"--listen-client-urls=" + etcdURL,
		"--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + peerURL,
		"--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=default=" + peerURL,
	}, rareGC)
	if err != nil {
		return err
	}
	audit, err := s.auditArgs()
	if err != nil {
		return errors.Join(err, etcd.Kill())
	}
	args := slices.Concat(s.apiServerArgs(etcdURL, ports[2]), audit, s.apiServerExtra)
	api, err := s.run(programs.KubeAPIServer, args, rareGC, memoryLimit)
	if err != nil {
		return errors.Join(err, etcd.Kill())
	}
	if err := s.writeAdmin(ports[2]); err != nil {
		return err
	}
	if err := s.waitReady(ctx, api, s.apiServerReady, etcd); err != nil {
		return errors.Join(err, api.Kill(), etcd.Kill())
	}
	s.base = []*process.Process{etcd, api}
	return s.startControllerManager()
}

func (s *Stack) apiServerArgs(etcdURL string, port int) []string {
	return []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + s.pki.file("tls.crt"),
		"--tls-private-key-file=" + s.pki.file("tls.key"),
		"--client-ca-file=" + s.pki.file("ca.crt"),
		"--service-account-issuer=https://127.0.0.1",
		"--service-account-signing-key-file=" + s.pki.file("sa.key"),
		"--service-account-key-file=" + s.pki.file("sa.pub"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--endpoint-reconciler-type=none",
		"--authorization-mode=RBAC",
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
	}
}

// startControllerManager runs the garbage collector, the namespace controller and the ClusterRole aggregation
// controller. Cluster API's managers use aggregated roles.
func (s *Stack) startControllerManager() error {
	manager, err := s.run(programs.KubeControllerManager, []string{
		"--kubeconfig=" + s.Kubeconfig(),
		"--authentication-kubeconfig=" + s.Kubeconfig(),
		"--authorization-kubeconfig=" + s.Kubeconfig(),
		"--controllers=garbage-collector-controller,namespace-controller,clusterrole-aggregation-controller",
		"--leader-elect=false",
		"--secure-port=0",
		"--concurrent-gc-syncs=5",
		"--concurrent-namespace-syncs=5",
	})
	if err != nil {
		return err
	}
	s.base = append(s.base, manager)
	return nil
}

// run starts a program of the stack. Its environment does not contain the caller's proxies.
func (s *Stack) run(name string, args []string, env ...string) (*process.Process, error) {
	p, err := process.Start(process.Spec{
		Name: name,
		Path: s.programs.Bin(name),
		Args: args,
		Dir:  s.dir,
		Env:  append(cleanEnvironment(), env...),
	})
	if err == nil {
		s.watch(p)
	}
	return p, err
}

func cleanEnvironment() []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		upper := strings.ToUpper(name)
		if strings.HasSuffix(upper, "_PROXY") || strings.HasPrefix(upper, "POD_") || upper == "KUBECONFIG" {
			continue
		}
		env = append(env, entry)
	}
	return env
}

// writeAdmin creates the administrator's certificate and kubeconfig.
func (s *Stack) writeAdmin(port int) error {
	admin, err := s.pki.issue("admin", []string{"system:masters"}, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return err
	}
	s.config = &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", port),
		TLSClientConfig: rest.TLSClientConfig{CAData: s.pki.caPEM, CertData: admin.cert, KeyData: admin.key},
		QPS:             -1,
		Proxy:           http.ProxyURL(nil),
	}
	return s.writeKubeconfig(s.Kubeconfig(),
		clientcmdapi.AuthInfo{ClientCertificateData: admin.cert, ClientKeyData: admin.key}, "default")
}

func (s *Stack) writeKubeconfig(path string, user clientcmdapi.AuthInfo, namespace string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["stack"] = &clientcmdapi.Cluster{Server: s.config.Host, CertificateAuthorityData: s.pki.caPEM}
	config.AuthInfos["user"] = &user
	config.Contexts["stack"] = &clientcmdapi.Context{Cluster: "stack", AuthInfo: "user", Namespace: namespace}
	config.CurrentContext = "stack"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}

func (s *Stack) apiServerReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.config)
	if err != nil {
		return err
	}
	return probe(ctx, client, s.config.Host+"/readyz")
}

func probe(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s responds with %s", url, response.Status)
	}
	return nil
}

// waitReady waits until the check ready passes. It returns an error as soon as the process or one of its prerequisites
// exits.
func (s *Stack) waitReady(ctx context.Context, p *process.Process, ready func(context.Context) error, needs ...*process.Process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		last := ready(ctx)
		if last == nil {
			return nil
		}
		for _, needed := range append(needs, p) {
			if err := ended(needed); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready (%w): see %s", p.Name(), errors.Join(ctx.Err(), last),
				p.LogPath())
		case <-ticker.C:
		}
	}
}

func ended(p *process.Process) error {
	select {
	case <-p.Done():
	default:
		return nil
	}
	if err := p.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%s was stopped during its start", p.Name())
}
