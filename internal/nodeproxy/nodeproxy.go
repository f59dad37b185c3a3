// SPDX-License-Identifier: Apache-2.0

// Package nodeproxy renders the HTTP proxy settings of nodes, and computes what they reach without the proxy. It only
// renders.
//
// No file of it reaches kubeadm's environment: kubeadm copies every *_proxy variable into the static pods of the
// control plane and into kube-proxy, whose connections within the cluster would then go through the proxy.
package nodeproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Keys of the data of the Secret <cluster>-proxy-settings.
const (
	// KeyAPT is a file of /etc/apt/apt.conf.d.
	KeyAPT = "apt.conf"
	// KeySystemd is a file of /etc/systemd/system.conf.d: the environment of all services that start after a
	// daemon-reload.
	KeySystemd = "systemd.conf"
	// KeyContainerd is a drop-in of containerd.service.
	KeyContainerd = "containerd.conf"
	// KeyKubeadm is a drop-in of the service that runs kubeadm: cloud-final.service, or kubeadm.service with Ignition.
	KeyKubeadm = "kubeadm.conf"
	// KeyProfile is a file of /etc/profile.d: the environment of login shells.
	KeyProfile = "profile.sh"
	// KeyPrepare is a script that gives the proxy to dnf and zypper, and limits files with a password to root.
	KeyPrepare = "prepare.sh"
	// keyDirect lists what is reached without the proxy, for pods.
	keyDirect = "no-proxy"
	// keyHTTP and keyHTTPS are the URLs of the proxies, with their credentials, for pods.
	keyHTTP  = "http-proxy"
	keyHTTPS = "https-proxy"
)

// SecretSuffix follows the name of the Cluster in the name of the Secret with the proxy settings of nodes. It does not
// end with a suffix of Cluster API's own Secrets, such as "-proxy" of the CA of the API server's front proxy: else the
// Secrets of two clusters could have one name.
const SecretSuffix = "-proxy-settings"

// DirectOf returns what is reached without the proxy, as the data of the Secret has it, and whether that was written
// for a version of the proxy.
func DirectOf(data map[string][]byte, version string) (direct []string, current bool) {
	_, current = data[versioned(KeyAPT, version)]
	return strings.FieldsFunc(string(data[keyDirect]), func(r rune) bool { return r == ',' }), current
}

// URLsOf returns the URLs of the proxies, with their credentials, as the data of the Secret has them.
func URLsOf(data map[string][]byte) (httpProxy, httpsProxy string) {
	return string(data[keyHTTP]), string(data[keyHTTPS])
}

// WithCredentials adds a user name and a password to the URL of a proxy; an empty URL stays empty.
func WithCredentials(proxy, username, password string) (string, error) {
	if proxy == "" {
		return "", nil
	}
	parsed, err := url.Parse(proxy)
	if err != nil {
		return "", errors.New("the URL of the proxy cannot be read") // The error would quote it.
	}
	parsed.User = url.UserPassword(username, password)
	return parsed.String(), nil
}

// NetworksOf returns the networks that are reached without the proxy, as the data of the Secret has them: those of the
// nodes are among them. Those that the user adds are left out.
func NetworksOf(data map[string][]byte, noProxy []string) []netip.Prefix {
	var networks []netip.Prefix
	direct, _ := DirectOf(data, "")
	for _, text := range direct {
		network, err := netip.ParsePrefix(text)
		if err == nil && !slices.Contains(noProxy, text) {
			networks = append(networks, network)
		}
	}
	return networks
}

// versioned returns the key of a file of one version of the proxy.
func versioned(key, version string) string {
	extension := path.Ext(key)
	return strings.TrimSuffix(key, extension) + "-" + version + extension
}

// Settings are the proxy settings of nodes.
type Settings struct {
	HTTP, HTTPS string   // URLs of the proxies; empty: none
	Direct      []string // hosts, domains and networks that are reached without
	// Version, if not empty, is in the names of further keys, under which the Secret has the same settings: what asks
	// for them gets no settings that were before. See [Version].
	Version string
}

// versionLength is how much of a hash distinguishes the proxies of a cluster.
const versionLength = 8

// Version identifies a proxy as a user asks for it. ClusterClass quick-start computes it in the same way.
func Version(httpProxy, httpsProxy string, noProxy []string) string {
	sum := sha256.Sum256([]byte(httpProxy + " " + httpsProxy + " " + strings.Join(noProxy, ",")))
	return hex.EncodeToString(sum[:])[:versionLength]
}

// A variable is one of the environment.
type variable struct{ name, value string }

// variables are what programs read: some know lower case only, some upper case only.
func (s Settings) variables() []variable {
	var all []variable
	direct := strings.Join(s.Direct, ",")
	if s.HTTP == "" && s.HTTPS == "" {
		direct = ""
	}
	for _, v := range []variable{{"HTTP_PROXY", s.HTTP}, {"HTTPS_PROXY", s.HTTPS}, {"NO_PROXY", direct}} {
		if v.value != "" {
			all = append(all, v, variable{strings.ToLower(v.name), v.value})
		}
	}
	return all
}

// Files returns the data of the Secret. Without a proxy each file is valid and sets nothing: the templates of a cluster
// whose proxy was removed still name them.
func (s Settings) Files() map[string][]byte {
	files := map[string][]byte{
		KeyAPT:        []byte(s.apt()),
		KeySystemd:    []byte(header + "[Manager]\n" + s.environment("DefaultEnvironment")),
		KeyContainerd: []byte(header + "[Service]\n" + s.environment("Environment")),
		KeyKubeadm:    []byte(header + kubeadmDropIn),
		KeyProfile:    []byte(header + s.profile()),
		KeyPrepare:    []byte(s.prepare()),
		keyDirect:     []byte(strings.Join(s.Direct, ",")),
		keyHTTP:       []byte(s.HTTP),
		keyHTTPS:      []byte(s.HTTPS),
	}
	if s.Version != "" {
		for _, key := range []string{KeyAPT, KeySystemd, KeyContainerd, KeyProfile, KeyPrepare} {
			files[versioned(key, s.Version)] = files[key]
		}
	}
	return files
}

const header = "# Written by Cluster API Provider for VMware Cloud Director.\n"

// notOfKubeadm explains what follows it.
const notOfKubeadm = "# kubeadm copies proxy variables of its environment into static pods: it gets none.\n"

const kubeadmDropIn = notOfKubeadm + `[Service]
UnsetEnvironment=HTTP_PROXY http_proxy HTTPS_PROXY https_proxy NO_PROXY no_proxy ALL_PROXY all_proxy FTP_PROXY ftp_proxy
`

// environment returns a setting of systemd with all variables; systemd expands % in it.
func (s Settings) environment(setting string) string {
	variables := s.variables()
	if len(variables) == 0 {
		return ""
	}
	words := make([]string, 0, len(variables))
	for _, v := range variables {
		words = append(words, `"`+v.name+"="+strings.ReplaceAll(v.value, "%", "%%")+`"`)
	}
	return setting + "=" + strings.Join(words, " ") + "\n"
}

// apt returns the configuration of APT, which knows hosts that are reached directly, but no domains and networks.
func (s Settings) apt() string {
	var file strings.Builder
	file.WriteString("// Written by Cluster API Provider for VMware Cloud Director.\n")
	for _, scheme := range []struct{ name, proxy string }{{"http", s.HTTP}, {"https", s.HTTPS}} {
		if scheme.proxy == "" {
			continue
		}
		fmt.Fprintf(&file, "Acquire::%s::Proxy \"%s\";\n", scheme.name, scheme.proxy)
		for _, host := range s.Direct {
			if !strings.HasPrefix(host, ".") && !strings.ContainsAny(host, "/:*") {
				fmt.Fprintf(&file, "Acquire::%s::Proxy::%s \"DIRECT\";\n", scheme.name, host)
			}
		}
	}
	return file.String()
}

// A Cluster is what decides which hosts nodes and pods reach without the proxy.
type Cluster struct {
	Services      []string // CIDRs; kubeadm's default if empty
	Pods          []string // CIDRs
	ServiceDomain string   // cluster.local if empty
	Endpoint      string   // host of the API server
	Site          string   // URL of VMware Cloud Director; empty: it is reached by the proxy
	Networks      []netip.Prefix
	More          []string // what the user adds
}

// defaultServices is the CIDR of Services of a cluster that names none (kubeadm's DefaultServicesSubnet). It has no
// default for pods.
const defaultServices = "10.96.0.0/12"

// Direct returns what is reached without the proxy: the machine itself, the cluster's Services, pods, endpoint and
// nodes, the site, and what the user adds; each once, always in the same order.
func (c Cluster) Direct() []string {
	domain := c.ServiceDomain
	if domain == "" {
		domain = "cluster.local"
	}
	all := []string{"localhost", "127.0.0.0/8", "::1", ".svc", "." + domain}
	if len(c.Services) == 0 {
		all = append(all, defaultServices)
	}
	all = append(all, c.Services...)
	all = append(all, c.Pods...)
	all = append(all, c.Endpoint)
	networks := make([]string, 0, len(c.Networks))
	for _, n := range c.Networks {
		networks = append(networks, n.Masked().String())
	}
	slices.Sort(networks)
	all = append(all, networks...)
	if site, err := url.Parse(c.Site); err == nil && c.Site != "" {
		all = append(all, site.Hostname())
	}
	var direct []string
	for _, host := range append(all, c.More...) {
		if host != "" && !slices.Contains(direct, host) {
			direct = append(direct, host)
		}
	}
	return direct
}
