package directory

import (
	"strings"
	"sync"
)

// Words that people use for one another when they ask for a tool, written for
// this program. A word stands for the other words of its lines, in queries
// only. Words that mean opposite things are never in one line, whatever word
// vectors say of them.

// sameThings are two names of one thing.
const sameThings = `
repo repository
k8s kubernetes
db database
email mail
e-mail email mail
pic picture photo
dir directory folder
docs documentation
doc document
config configuration settings
env environment
org organization organisation
auth authentication
admin administrator
app application
info information
img image
msg message
pkg package
url link
spec specification
calc calculate calculator
lang language
temp temperature
pr pull request
mr merge request
stats statistics
perf performance
dept department
acct account
tx transaction
txn transaction
crypto cryptocurrency
btc bitcoin
eth ethereum
vm machine
gh github
gcal calendar
yt youtube
tz timezone
sms text message
ssn social security
kpi metric
ocr recognize text
tts speech
stt transcribe speech
colour color
organise organize
summarise summarize
analyse analyze
visualise visualize
categorise categorize
cancelled canceled
catalogue catalog
favourite favorite
`

// nearThings are close enough to look for when the word itself is not there.
const nearThings = `
pdf docx document
ip address
dns domain
sql query database
xlsx excel spreadsheet
pptx powerpoint presentation
ci cicd pipeline build
ai llm model
assign give hand transfer
left remaining rest remain
create add new make insert generate build
create register open
create start launch
create write compose draft
delete remove erase clear drop destroy purge trash
get fetch retrieve read show view obtain return
get find lookup check
list enumerate browse all show display
search find query lookup discover locate seek
update edit modify change set alter adjust revise
update replace overwrite
update patch refresh
send post deliver dispatch submit
run execute invoke trigger perform launch
start begin launch resume boot
stop cancel abort terminate kill halt shut
close finish end complete resolve
pause suspend freeze
upload push publish
download export save pull
import load ingest
copy duplicate clone replicate
move transfer relocate shift
rename retitle relabel
convert transform translate change
translate translation language
analyze inspect examine evaluate assess review
compare diff difference versus
summarize summary digest overview
verify validate check confirm
schedule book reserve plan
reservation booking appointment
buy purchase order acquire
sell sale
pay payment charge checkout billing
invoice bill receipt
refund reimburse chargeback
subscribe subscription follow
unsubscribe unfollow
attach attachment upload
assign assignee delegate allocate
approve accept authorize
reject decline deny refuse
invite invitation
join enter
share grant permission
lock protect secure
archive backup
restore recover undo revert
merge combine join
split divide separate
sort order rank
filter select narrow
count number total amount
calculate compute solve evaluate
convert conversion exchange
measure metric
monitor watch track observe
notify alert notification reminder
remind reminder alarm
message chat conversation dm text
comment reply note annotation
channel room
thread conversation discussion
mail message inbox
contact person people address
user account member person profile
customer client buyer
employee staff worker personnel
team group
company business firm corporation enterprise organization
boss manager supervisor
file document
folder directory path
table spreadsheet sheet grid
spreadsheet excel workbook sheet
row record entry line
column field
database sql table
repository project codebase
commit revision change
branch ref
issue ticket bug task problem
task todo item
board kanban
sprint iteration
milestone deadline due
calendar event meeting schedule
event happening occasion
meeting call conference appointment
agenda schedule
free available availability busy
website site webpage web page url
link url hyperlink
scrape crawl extract harvest
browse navigate visit open
click press tap
screenshot capture snapshot picture
image picture photo photograph
draw sketch paint illustrate
video clip movie film footage
movie film cinema
song music track audio tune
listen play
podcast episode
lyrics song
book novel literature
news headline article story
article post paper
paper publication research study journal
weather forecast climate rain temperature
location place position coordinates gps
map route direction navigation
distance far length
address street location
trip travel journey vacation itinerary
flight plane airline airfare
hotel lodging accommodation stay
restaurant food dining eat
recipe cook dish meal
drink beverage
grocery shopping supermarket
store shop market
product item goods merchandise
price cost quote rate fee
cheap discount deal coupon offer
stock share equity ticker
market exchange trading
crypto coin token bitcoin
wallet balance
bank finance money
loan mortgage credit
tax income
salary wage pay payroll compensation
budget expense spending
profit revenue income earnings
job career vacancy position employment
resume cv
holiday leave vacation
doctor physician medical
medicine drug medication pharmaceutical
disease illness condition symptom
health wellness fitness
exercise workout training
diet nutrition calorie food
car vehicle automobile
house home property estate
apartment rent rental lease
pet dog cat animal
plant garden
school education course class
learn study teach lesson
student pupil
exam test quiz
question query ask
answer reply response
law legal regulation
contract agreement
government politics
court lawsuit
crime police
password credential secret
login signin authenticate session
key secret token credential
permission access role right
encrypt encode cipher
decrypt decode
hash checksum
container docker
cluster node
pod container
deploy deployment release rollout
server host machine instance
log trace
error exception failure crash fault
incident outage alert
status state health
performance speed latency
memory ram
disk storage space
process job
function lambda method
code source program script
compile build
test spec
lint format style
debug troubleshoot diagnose
package library dependency module
install setup add
version release
queue message
bucket storage blob
dashboard chart panel
chart graph plot diagram visualization
statistics analytics metrics report
report summary
pipeline workflow automation
webhook callback
history past previous log
recent latest newest last
current today present
time clock hour
date day
timezone zone
age birthday
remember memory store recall save
forget delete
idea suggestion recommendation
recommend suggest
similar related alike like
random generate
game play gaming
sport match
score result
joke funny humor
poem poetry
gift present
clothes clothing fashion outfit
color palette
font typography
slide presentation powerpoint deck
page slide
sound audio noise
voice speech speak
transcribe transcript caption subtitle
record capture
phone call telephone mobile
light lamp bulb
heat temperature thermostat
device hardware sensor
battery power
tweet twitter
video youtube
tag label category
category type kind
title name heading
description detail
detail information
size dimension
limit quota
list inventory catalog
push deploy release ship
timesheet hours
odds probability chance likelihood
percent percentage ratio proportion
sum add total plus
subtract minus difference
multiply product times
average mean median
round integer
power exponent
root sqrt
attorney lawyer legal law
teacher tutor education
chef cook
author writer
musician artist singer band
actor cast
director filmmaker
gym fitness workout
concert show gig performance event
theater theatre broadway play
museum gallery exhibition
ticket pass admission
tour excursion sightseeing
ride taxi cab uber
train railway rail
bus transit transport
airport flight
luggage baggage
ski snow winter
surf wave beach
hike trail
camp tent
party celebration
wedding marriage
baby child kid
parent mother father mom dad
gift shopping
beauty makeup cosmetics skincare
furniture decor interior
cleaning housekeeping
plumber electrician handyman
haircut salon stylist
massage spa
therapy therapist counselor
psychology mental
symptom diagnosis
pill medication dose
vitamin supplement
hospital clinic
insurance policy coverage
claim request
invest investment portfolio stock
trade buy
trade sell
trade swap
dividend yield
earnings financial
etf fund
bond treasury
debt loan
interest rate
token nft
swap exchange trade
blockchain chain onchain
contract abi
gas fee
validator stake
deposit fund
withdraw payout
donate donation charity
sentiment mood opinion emotion
review rating feedback
survey poll form
vote ballot
plagiarism originality
grammar spelling proofread
paraphrase rephrase rewrite reword
essay article writing
blog post article
caption subtitle
logo brand branding
banner ad advertisement
ad campaign marketing advertising
seo keyword ranking
traffic visitors analytics
lead prospect
deal opportunity
pipeline funnel
quote estimate
shipment package parcel delivery
track trace
warehouse inventory stock
supplier vendor
cart basket
coupon promo voucher
wishlist favorites
menu dish
reservation table
ingredient recipe
calorie nutrition
wine beer drink
coffee tea
vegan vegetarian diet
horoscope astrology zodiac
tarot fortune
quote saying proverb
riddle puzzle trivia
word vocabulary dictionary
definition meaning dictionary define
synonym thesaurus
pronunciation pronounce
acronym abbreviation
encyclopedia wikipedia knowledge
fact knowledge
graph node edge relation entity
entity node object
relation relationship link connection
observation fact note
vector embedding
index collection
insert upsert put
schema structure columns
join combine
transaction commit
cache memory
container image docker
volume mount disk
namespace scope
replica scale
ingress route
secret credential
certificate ssl tls
firewall security
vulnerability cve security exploit
malware virus antivirus threat
scan inspect check
spam abuse
subnet network
port socket
ping reachability latency
domain whois dns
request call
endpoint api route
payload body
header metadata
redirect forward
proxy gateway
session context
cookie storage
tab window
element selector button
hover mouse pointer
keyboard key press type
scroll swipe
drag drop move
form field input
dropdown option select
checkbox toggle
upload attach
wait sleep delay pause
timeout deadline
retry repeat
loop iterate
parse extract
regex pattern
match find
substring text
concat concatenate combine join append
prepend prefix
trim strip
uppercase lowercase case
encode base64
compress zip archive
decompress unzip extract
resize scale crop
rotate turn flip
blur filter effect
transparent background
watermark stamp
thumbnail preview
render draw generate
mesh model 3d
scene canvas
layer frame
component element
style css
icon symbol emoji
reaction emoji
pin bookmark star
bookmark favorite save
playlist collection
album record
artist musician
lyric song
volume loudness
mute silence
brightness light
thermostat climate
vacuum clean
garage door
camera photo
alarm security
doorbell camera
print printer
scan document
sign signature
contract document
template boilerplate
snippet code
gist snippet
fork copy clone
star favorite
stash shelve
rebase merge
diff changes
blame annotate
untracked status
hook trigger
runner agent
artifact output
coverage test
assert verify
mock fake stub
benchmark performance
profile performance
flame profile
trace span
metric gauge
threshold limit
anomaly outlier
forecast predict prediction projection
trend pattern history
correlation regression
cluster group
classify categorize label
train fit
dataset data
experiment run
notebook jupyter
cell block
formula expression
pivot table
axis chart
pie chart
histogram chart
heatmap chart
flowchart diagram
mindmap diagram
timeline history
kanban board
backlog tasks
epic initiative
story ticket
subtask task
dependency blocker
priority urgency
reporter author
watcher follower
estimate points
burndown chart
standup meeting
retrospective meeting
attendee participant guest
organizer host
rsvp respond
recurring repeat
reschedule move update
timezone time
holiday vacation
birthday date
anniversary date
countdown timer
stopwatch timer
sunrise sunset astronomy
moon lunar astronomy
planet space astronomy
satellite iss space
earthquake seismic
storm hurricane weather
pollution air quality
pollen allergy
tide ocean
species animal
breed dog cat
vet veterinary
crop farm agriculture
soil garden
molecule compound chemical
protein structure
gene genome dna
element chemistry
force physics
velocity speed
acceleration physics
mass weight
volume capacity
area surface
circumference perimeter
triangle geometry
circle geometry
matrix linear
derivative calculus
integral calculus
equation solve
prime number
factorial number
fibonacci sequence
permutation combination
gcd divisor
statistics standard deviation
`

// generalThings name the kind, after the colon, of things that people ask for
// by their own names. It does not hold the other way round.
const generalThings = `
dollar euro yen pound rupee peso yuan franc usd eur gbp jpy inr: currency
celsius fahrenheit degree degrees kelvin: temperature
kilometer kilometers mile miles meter meters feet inch inches: distance length
kilogram kilograms pounds kg lbs: weight
liter gallon milliliter: volume
latitude longitude lat lon lng: coordinates location
monday tuesday wednesday thursday friday saturday sunday: date
january february march april june july august september october november december: date
rain rainy sunny snow wind humid humidity umbrella: weather
pizza sushi burger pasta italian thai mexican: restaurant food
guitar piano violin drums: music instrument
football soccer basketball baseball tennis cricket hockey golf nba nfl: sports
apple tesla amazon google microsoft nvidia aapl tsla: stock company
bitcoin ethereum solana dogecoin: crypto
python javascript typescript java golang rust ruby: code
french german spanish italian chinese japanese portuguese korean hindi: language translate
paris london tokyo berlin toronto chicago boston seattle: city location
toyota ford honda bmw mercedes: car
dog cat puppy kitten: pet animal
lamp light bulb thermostat: device
sofa chair desk: furniture
shirt shoes dress jacket jeans sneakers: clothing fashion
lipstick shampoo skincare: beauty
hamlet romeo: play
gmail outlook: email
postgres postgresql mysql sqlite mongodb mariadb: database
slack discord telegram whatsapp: message chat
jira linear asana trello: issue task
xls xlsx csv: spreadsheet
png jpg jpeg gif webp svg: image
mp3 wav flac: audio
mp4 mov avi mkv: video
zip tar gz rar: archive
html css: web page
json yaml xml: format data
sha256 md5 sha1: hash
rsa aes: encryption
erc721: nft
erc20: token
wifi bluetooth router: network
cpu gpu ram: hardware system
president senator congress parliament: politics government
headache fever cough pain: symptom health
cancer diabetes asthma: disease medical
thriller comedy horror drama: movie genre
novel: book
mozart beethoven: music composer
hiking skiing surfing camping: travel outdoor
`

// synonym is one word that stands for another.
type synonym struct {
	term string
	same bool // another name of the same thing
}

// synonyms gives for each term the terms that stand for it.
var synonyms = sync.OnceValue(func() map[string][]synonym {
	table := make(map[string][]synonym)
	add := func(list string, same bool) {
		for line := range strings.Lines(list) {
			var terms []string
			for _, w := range appendWords(nil, line) {
				terms = append(terms, w.term)
			}
			for _, from := range terms {
				for _, to := range terms {
					if from != to && !hasSynonym(table[from], to) {
						table[from] = append(table[from], synonym{to, same})
					}
				}
			}
		}
	}
	add(sameThings, true)
	add(nearThings, false)
	for line := range strings.Lines(generalThings) {
		things, kinds, _ := strings.Cut(line, ":")
		for _, from := range appendWords(nil, things) {
			for _, to := range appendWords(nil, kinds) {
				if from.term != to.term && !hasSynonym(table[from.term], to.term) {
					table[from.term] = append(table[from.term], synonym{to.term, false})
				}
			}
		}
	}
	return table
})

func hasSynonym(list []synonym, term string) bool {
	for _, s := range list {
		if s.term == term {
			return true
		}
	}
	return false
}

// phraseList is pairs of words that mean other words together.
const phraseList = `
jot down: create note write
note down: create note write
hand over: assign transfer
give to: assign
move on: next
open pr: create
raise pr: create
sign out: logout
log out: logout
get back: return restore
send back: return reply
pay back: refund
money back: refund
zip up: compress archive
pack up: compress archive
how warm: temperature
how fast: speed
how big: size
how late: delay status
how old: age date
who wrote: author blame
who did: author history
sign off: approve
take back: delete undo retract
get rid: delete remove
look up: search get find
set up: create configure setup
turn on: enable start
turn off: disable stop
switch on: enable start
switch off: disable stop
shut down: stop
log in: login
sign in: login
sign up: register
find out: get search
put in: insert add
put into: insert add
throw away: delete
throw out: delete
work item: issue ticket
work items: issue ticket
pull request: pr
merge request: mr
pull requests: pr
merge requests: mr
to do: todo task
to dos: todo task
time zone: timezone
web site: website
web page: webpage
write down: create note
fill in: fill complete
fill out: fill complete
make up: generate
call off: cancel
bring back: restore
roll back: rollback revert
spin up: create start
boil down: summarize
sum up: summarize
add up: sum calculate
how many: count
how much: price cost calculate
how far: distance
how long: duration
how tall: height
how old: age
how hot: temperature
how cold: temperature
who is: get person
what time: time
what day: date
day off: leave
days off: leave
time off: leave
sick leave: leave
phone number: phone
tear down: delete destroy
take down: delete remove
take over: assign
hand over: assign
pass on: forward
send on: forward
check out: checkout get
check off: complete
tick off: complete
cross off: complete remove
back up: backup
speed up: optimize
clean up: delete cleanup
wipe out: delete
scale up: scale
scale down: scale
read out: speak read
read aloud: speech
speak aloud: speech
write to: send message
reach out: send contact
get hold: contact
is there: list
are there: list
do i have: list
`

// phrases gives the words that two neighbouring words mean together.
var phrases = sync.OnceValue(func() map[[2]string][]*word {
	table := make(map[[2]string][]*word)
	for line := range strings.Lines(phraseList) {
		if pair, meaning, ok := strings.Cut(line, ":"); ok {
			w := appendWords(nil, pair)
			table[[2]string{w[0].text, w[1].text}] = appendWords(nil, meaning)
		}
	}
	return table
})

// destructive are the verbs of tools that destroy things.
var destructive = sync.OnceValue(func() map[string]bool {
	set := make(map[string]bool)
	for _, w := range appendWords(nil, `delete remove erase clear drop destroy purge trash wipe flush kill terminate
		uninstall revoke discard forget unlink cancel void clean empty rid reset`) {
		set[w.term] = true
	}
	return set
})
