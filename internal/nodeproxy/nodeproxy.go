// SPDX-License-Identifier: Apache-2.0

// Package nodeproxy renders the HTTP proxy settings of nodes, and computes their proxy exceptions. It does not write to
// nodes or to the API server.
//
// None of its files changes the environment of kubeadm. kubeadm copies every *_proxy variable into the static pods of the
// control plane and into kube-proxy, whose connections within the cluster would then use the proxy.
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
	// KeyPrepare is a script that configures the proxy of dnf and zypper, and lets only root read files with a password.
	KeyPrepare = "prepare.sh"
	// keyDirect lists the proxy exceptions of pods.
	keyDirect = "no-proxy"
	// keyHTTP and keyHTTPS are the URLs of the proxies, with their credentials, for pods.
	keyHTTP  = "http-proxy"
	keyHTTPS = "https-proxy"
)

// SecretSuffix follows the name of the Cluster in the name of the Secret with the proxy settings of nodes. It must not end
// with a suffix of Cluster API's own Secrets, such as "-proxy" for the CA of the API server's front proxy. Otherwise the
// Secrets of two clusters could have the same name.
const SecretSuffix = "-proxy-settings"

// DirectOf returns the proxy exceptions in the data of the Secret. It also reports whether the data was written for the
// given version of the proxy.
func DirectOf(data map[string][]byte, version string) (direct []string, current bool) {
	_, current = data[versioned(KeyAPT, version)]
	return strings.FieldsFunc(string(data[keyDirect]), func(r rune) bool { return r == ',' }), current
}

// URLsOf returns the URLs of the proxies in the data of the Secret, with their credentials.
func URLsOf(data map[string][]byte) (httpProxy, httpsProxy string) {
	return string(data[keyHTTP]), string(data[keyHTTPS])
}

// WithCredentials adds a user name and a password to the URL of a proxy. An empty URL stays empty.
func WithCredentials(proxy, username, password string) (string, error) {
	if proxy == "" {
		return "", nil
	}
	parsed, err := url.Parse(proxy)
	if err != nil {
		return "", errors.New("the URL of the proxy cannot be read") // The wrapped error would contain the URL.
	}
	parsed.User = url.UserPassword(username, password)
	return parsed.String(), nil
}

// NetworksOf returns the networks among the proxy exceptions in the data of the Secret, including those of the nodes. It
// omits the networks in noProxy, which the user added.
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
	HTTP, HTTPS string   // URLs of the proxies; empty: no proxy
	Direct      []string // hosts, domains and networks that are reached without the proxy
	// Version, if not empty, is part of additional keys with the same settings. A reader of these keys never gets the
	// settings of an earlier proxy. See [Version].
	Version string
}

// versionLength is the length of the hash that distinguishes the proxies of a cluster.
const versionLength = 8

// Version returns a hash of the proxy settings in the spec. ClusterClass quick-start computes the same hash.
func Version(httpProxy, httpsProxy string, noProxy []string) string {
	sum := sha256.Sum256([]byte(httpProxy + " " + httpsProxy + " " + strings.Join(noProxy, ",")))
	return hex.EncodeToString(sum[:])[:versionLength]
}

// A variable is an environment variable.
type variable struct{ name, value string }

// variables returns the environment variables in upper and lower case, because some programs read only one of them.
func (s Settings) variables() []variable {
	var all []variable
	for _, v := range []variable{{"HTTP_PROXY", s.HTTP}, {"HTTPS_PROXY", s.HTTPS}, {"NO_PROXY", s.exceptions()}} {
		if v.value != "" {
			all = append(all, v, variable{strings.ToLower(v.name), v.value})
		}
	}
	return all
}

// exceptions returns the hosts, domains and networks that are reached without the proxy, separated by commas. The result
// is empty if there is no proxy.
func (s Settings) exceptions() string {
	if s.HTTP == "" && s.HTTPS == "" {
		return ""
	}
	return strings.Join(s.Direct, ",")
}

// Files returns the data of the Secret. Without a proxy, each file is valid and sets nothing, because the templates of a
// cluster whose proxy was removed still refer to the files.
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

// notOfKubeadm is a comment in the files, which explains the lines after it.
const notOfKubeadm = "# kubeadm copies proxy variables of its environment into static pods: it gets none.\n"

const kubeadmDropIn = notOfKubeadm + `[Service]
UnsetEnvironment=HTTP_PROXY http_proxy HTTPS_PROXY https_proxy NO_PROXY no_proxy ALL_PROXY all_proxy FTP_PROXY ftp_proxy
`

// environment returns a setting of systemd with all variables. It escapes %, which systemd expands.
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

// apt returns the configuration of APT. APT supports exceptions for hosts, but not for domains and networks.
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

// A Cluster holds the facts that determine the proxy exceptions of nodes and pods.
type Cluster struct {
	Services      []string // CIDRs; kubeadm's default if empty
	Pods          []string // CIDRs
	ServiceDomain string   // cluster.local if empty
	Endpoint      string   // host of the API server
	Site          string   // URL of VMware Cloud Director; empty: it is reached through the proxy
	Networks      []netip.Prefix
	More          []string // exceptions that the user adds
}

// defaultServices is the CIDR of Services if the cluster does not set one (kubeadm's DefaultServicesSubnet). There is no
// default for pods.
const defaultServices = "10.96.0.0/12"

// Direct returns the proxy exceptions: the machine itself, the Services, pods, endpoint and nodes of the cluster, the
// site, and the exceptions of the user. It returns each of them once, in a stable order.
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
