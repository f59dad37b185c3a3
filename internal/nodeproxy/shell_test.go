// SPDX-License-Identifier: Apache-2.0

package nodeproxy

import (
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// Files of package managers, as in images.
const (
	dnfConf = `[main]
gpgcheck=1
best=True

[mirror]
proxy=http://mirror-proxy:3128
`
	susesProxy = `## Path: Network/Proxy
PROXY_ENABLED="no"
HTTP_PROXY=""
HTTPS_PROXY=""
FTP_PROXY="http://ftp-proxy:3128"
NO_PROXY="localhost, 127.0.0.1"
`
)

// A node is a folder with the files of an image and of the Secret.
type node struct {
	*WithT

	root string
}

// image returns a node whose image has some files by path.
func image(t *testing.T, s Settings, files map[string]string) node {
	t.Helper()
	n := node{NewWithT(t), t.TempDir()}
	for path, content := range files {
		n.write(path, content, 0o644)
	}
	n.write("/etc/profile.d/zz-proxy.sh", string(s.Files()[KeyProfile]), 0o600)
	n.write("/etc/apt/apt.conf.d/95proxy", string(s.Files()[KeyAPT]), 0o644)
	n.write("/etc/node-proxy/prepare.sh", string(s.Files()[KeyPrepare]), 0o700)
	return n
}

func (n node) write(path, content string, mode fs.FileMode) {
	full := filepath.Join(n.root, path)
	n.Expect(os.MkdirAll(filepath.Dir(full), 0o755)).To(Succeed())
	n.Expect(os.WriteFile(full, []byte(content), mode)).To(Succeed())
}

func (n node) read(path string) string {
	data, err := os.ReadFile(filepath.Join(n.root, path))
	n.Expect(err).NotTo(HaveOccurred())
	return string(data)
}

func (n node) mode(path string) fs.FileMode {
	info, err := os.Stat(filepath.Join(n.root, path))
	n.Expect(err).NotTo(HaveOccurred())
	return info.Mode().Perm()
}

// prepare runs the script twice, as a node that reboots does.
func (n node) prepare() {
	for range 2 {
		out, err := exec.Command("sh", filepath.Join(n.root, "/etc/node-proxy/prepare.sh"), n.root).CombinedOutput()
		n.Expect(err).NotTo(HaveOccurred(), string(out))
		n.Expect(out).To(BeEmpty())
	}
}

func withPassword(password string) Settings {
	s := settings()
	var err error
	s.HTTP, err = WithCredentials("http://proxy.example.com:3128", "ada", password)
	if err != nil {
		panic(err)
	}
	s.HTTPS = s.HTTP
	return s
}

func withoutPassword() Settings {
	s := settings()
	s.HTTP = "http://proxy.example.com:3128"
	s.HTTPS = "http://proxy.example.com:3129"
	return s
}

func TestDNFHasTheProxyInItsMainSection(t *testing.T) {
	n := image(t, withoutPassword(), map[string]string{"/etc/dnf/dnf.conf": dnfConf})

	n.prepare()

	n.Expect(n.read("/etc/dnf/dnf.conf")).To(Equal("[main]\n"+header+"proxy=http://proxy.example.com:3129\n"+
		strings.TrimPrefix(dnfConf, "[main]\n")), "the user's settings are kept")
	n.Expect(n.mode("/etc/dnf/dnf.conf")).To(Equal(fs.FileMode(0o644)))
	n.Expect(filepath.Join(n.root, "/etc/sysconfig")).NotTo(BeADirectory(), "the image has no zypper")
}

func TestDNFKeepsTheProxyOfTheImage(t *testing.T) {
	own := "[main]\nbest=True\nproxy = http://own:3128\n"
	n := image(t, withoutPassword(), map[string]string{"/etc/dnf/dnf.conf": own})

	n.prepare()

	n.Expect(n.read("/etc/dnf/dnf.conf")).To(Equal(own))
}

func TestDNFConfigurationIsCreatedIfMissing(t *testing.T) {
	n := image(t, withoutPassword(), map[string]string{"/etc/dnf/plugins/copr.conf": ""})

	n.prepare()

	n.Expect(n.read("/etc/dnf/dnf.conf")).To(Equal("[main]\n" + header + "proxy=http://proxy.example.com:3129\n"))
}

func TestZypperHasTheProxyOfEachScheme(t *testing.T) {
	n := image(t, withoutPassword(), map[string]string{"/etc/zypp/zypp.conf": "", "/etc/sysconfig/proxy": susesProxy})

	n.prepare()

	n.Expect(n.read("/etc/sysconfig/proxy")).To(Equal(`## Path: Network/Proxy
FTP_PROXY="http://ftp-proxy:3128"
` + header + `PROXY_ENABLED="yes"
HTTP_PROXY="http://proxy.example.com:3128"
HTTPS_PROXY="http://proxy.example.com:3129"
NO_PROXY="` + strings.Join(settings().Direct, ",") + `"
`))
}

func TestZypperKeepsTheProxyOfTheImage(t *testing.T) {
	own := strings.Replace(susesProxy, `HTTPS_PROXY=""`, `HTTPS_PROXY="http://own:3128"`, 1)
	n := image(t, withoutPassword(), map[string]string{"/etc/zypp/zypp.conf": "", "/etc/sysconfig/proxy": own})

	n.prepare()

	n.Expect(n.read("/etc/sysconfig/proxy")).To(Equal(own))
}

func TestOnlyRootReadsFilesWithAPassword(t *testing.T) {
	for name, tt := range map[string]struct {
		settings Settings
		mode     fs.FileMode
	}{
		"with a password":    {withPassword("secret"), 0o600},
		"without a password": {withoutPassword(), 0o644},
	} {
		t.Run(name, func(t *testing.T) {
			n := image(t, tt.settings, map[string]string{
				"/etc/zypp/zypp.conf":  "",
				"/etc/sysconfig/proxy": susesProxy,
				"/etc/dnf/dnf.conf":    dnfConf,
			})

			n.prepare()

			for _, path := range []string{
				"/etc/profile.d/zz-proxy.sh",
				"/etc/apt/apt.conf.d/95proxy",
				"/etc/dnf/dnf.conf",
				"/etc/sysconfig/proxy",
			} {
				n.Expect(n.mode(path)).To(Equal(tt.mode), path)
			}
		})
	}
}

func TestPackageManagersAreUnchangedWithoutAProxy(t *testing.T) {
	n := image(t, Settings{Direct: []string{"localhost"}}, map[string]string{
		"/etc/zypp/zypp.conf":  "",
		"/etc/sysconfig/proxy": susesProxy,
		"/etc/dnf/dnf.conf":    dnfConf,
	})

	n.prepare()

	n.Expect(n.read("/etc/dnf/dnf.conf")).To(Equal(dnfConf))
	n.Expect(n.read("/etc/sysconfig/proxy")).To(Equal(susesProxy))
}

// TestSpecialCharactersOfAPasswordReachEachFile makes shells read the shell files, and searches the others for
// expansions.
func TestSpecialCharactersOfAPasswordReachEachFile(t *testing.T) {
	for _, password := range []string{`$HOME`, `$(id)`, "`id`", `a'b"c\d`, `p@ss:word/%41`, `!;&|<>*?#~ {}`, `größe`} {
		t.Run(password, func(t *testing.T) {
			s := withPassword(password)
			n := image(t, s, map[string]string{
				"/etc/zypp/zypp.conf":  "",
				"/etc/sysconfig/proxy": susesProxy,
				"/etc/dnf/dnf.conf":    dnfConf,
			})

			n.prepare()

			for _, shell := range []string{"sh", "bash"} {
				out, err := exec.CommandContext(t.Context(), shell, "-c", `. "$1"; printf %s "$https_proxy"`, shell,
					filepath.Join(n.root, "/etc/profile.d/zz-proxy.sh")).CombinedOutput()
				n.Expect(err).NotTo(HaveOccurred(), string(out))
				n.Expect(string(out)).To(Equal(s.HTTPS), shell)
				out, err = exec.CommandContext(t.Context(), shell, "-c", `. "$1"; printf %s "$HTTPS_PROXY"`, shell,
					filepath.Join(n.root, "/etc/sysconfig/proxy")).CombinedOutput()
				n.Expect(err).NotTo(HaveOccurred(), string(out))
				n.Expect(decoded(n, string(out))).To(Equal(password), shell)
			}
			_, proxy, found := strings.Cut(n.read("/etc/dnf/dnf.conf"), "\nproxy=")
			n.Expect(found).To(BeTrue())
			proxy, _, _ = strings.Cut(proxy, "\n")
			n.Expect(proxy).NotTo(ContainSubstring("$"), "dnf would expand variables")
			n.Expect(decoded(n, proxy)).To(Equal(password))
		})
	}
}

// TestKubeadmInALoginShellGetsNoVariable uses a kubeadm that prints its environment.
func TestKubeadmInALoginShellGetsNoVariable(t *testing.T) {
	n := image(t, withPassword("secret"), nil)
	n.write("/bin/kubeadm", "#!/bin/sh\nenv\necho \"$@\"\n", 0o700)
	for _, shell := range []string{"sh", "bash"} {
		command := exec.CommandContext(t.Context(), shell, "-c", `. "$1"; kubeadm init --config "a b"; curl=$(env)`+
			`; case $curl in *https_proxy=http://ada:secret@*) ;; *) exit 1 ;; esac`, shell,
			filepath.Join(n.root, "/etc/profile.d/zz-proxy.sh"))
		command.Env = []string{"PATH=" + filepath.Join(n.root, "bin") + ":" + os.Getenv("PATH")}

		out, err := command.CombinedOutput()

		n.Expect(err).NotTo(HaveOccurred(), "other programs get them: %s", out)
		n.Expect(string(out)).To(HaveSuffix("init --config a b\n"))
		n.Expect(strings.ToLower(string(out))).NotTo(ContainSubstring("proxy="), shell)
	}
}

func TestThePreparationIsValidShell(t *testing.T) {
	g := NewWithT(t)
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("shellcheck is not installed")
	}
	// SC2016 mistakes the $ in a password for a variable.
	for _, key := range []string{KeyPrepare, KeyProfile} {
		command := exec.CommandContext(t.Context(), "shellcheck", "--shell=sh", "--exclude=SC2016", "-")
		command.Stdin = strings.NewReader(string(withPassword(`a'$b`).Files()[key]))
		out, err := command.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), "%s: %s", key, out)
	}
}

// decoded returns the password in the URL of a proxy.
func decoded(n node, proxy string) string {
	parsed, err := url.Parse(proxy)
	n.Expect(err).NotTo(HaveOccurred())
	password, _ := parsed.User.Password()
	return password
}
