// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto/x509/pkix"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const noProxy = "127.0.0.1,localhost,::1"

// ProxyURL returns the URL of the HTTP proxy that connects control plane endpoints with simulated clusters. Other
// targets, except for loopback addresses, are rejected.
func (w *Workloads) ProxyURL() string { return w.proxy.URL() }

// Env returns the environment variables that let a process reach simulated clusters. They replace existing proxy
// settings.
func (w *Workloads) Env() []string {
	return []string{
		"HTTPS_PROXY=" + w.ProxyURL(),
		"https_proxy=" + w.ProxyURL(),
		"NO_PROXY=" + noProxy,
		"no_proxy=" + noProxy,
	}
}

// Kubeconfig changes a kubeconfig, usually that of the Secret <cluster>-kubeconfig, to use the proxy.
func (w *Workloads) Kubeconfig(data []byte) ([]byte, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	for _, c := range config.Clusters {
		c.ProxyURL = w.ProxyURL()
	}
	return clientcmd.Write(*config)
}

// WriteKubeconfig writes the result of Kubeconfig to a file that only its owner can read.
func (w *Workloads) WriteKubeconfig(path string, data []byte) error {
	changed, err := w.Kubeconfig(data)
	if err != nil {
		return err
	}
	return os.WriteFile(path, changed, 0o600)
}

// AdminKubeconfig returns a kubeconfig with administrator rights for a cluster, given by name or endpoint. It
// corresponds to the admin.conf of kubeadm, and uses the proxy.
func (w *Workloads) AdminKubeconfig(cluster string) ([]byte, error) {
	c, err := w.find(cluster)
	if err != nil {
		return nil, err
	}
	issued, err := c.ca.issue(pkix.Name{CommonName: "kubernetes-admin", Organization: []string{"system:masters"}})
	if err != nil {
		return nil, err
	}
	cert, key, err := encode(issued)
	if err != nil {
		return nil, err
	}
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{c.name: {
			Server:                   "https://" + c.endpoint,
			CertificateAuthorityData: c.ca.pem(),
			ProxyURL:                 w.ProxyURL(),
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{c.name: {ClientCertificateData: cert, ClientKeyData: key}},
		Contexts:       map[string]*clientcmdapi.Context{c.name: {Cluster: c.name, AuthInfo: c.name}},
		CurrentContext: c.name,
	})
}
